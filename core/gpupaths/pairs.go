package gpupaths

import (
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/transport"
)

// pairs say which path and which link each pair of ranks has.
type pairs struct {
	rank, size int
	paths      []transport.GPUPath // by the index that pair gives
	against    []string            // why there is no better path
	links      []cuda.Link         // of GPUs that reach each other's memory
	forced     string              // paths.Config.Lines
}

// pair is the index of a pair of ranks.
func (p *pairs) pair(a, b int) int { return min(a, b)*p.size + max(a, b) }

func (p *pairs) path(a, b int) transport.GPUPath { return p.paths[p.pair(a, b)] }

// uses reports whether this rank has a path of a kind to another one.
func (p *pairs) uses(kind transport.GPUPath) bool {
	for r := range p.size {
		if r != p.rank && p.path(p.rank, r) == kind {
			return true
		}
	}
	return false
}

// all reports whether something holds for all pairs of ranks.
func (p *pairs) all(holds func(a, b int) bool) bool {
	for a := range p.size {
		for b := range a {
			if !holds(a, b) {
				return false
			}
		}
	}
	return true
}

// peers reports whether the GPUs of two ranks reach each other's memory.
func (p *pairs) peers(a, b int) bool { return p.path(a, b).Peer() }

// lines reports whether lines of 128 bytes go between two ranks, or in a rank's own memory.
func (p *pairs) lines(a, b int) bool {
	switch {
	case p.forced == "0":
		return false
	case p.forced == "1":
		return a == b || p.peers(a, b)
	}
	return a == b || p.path(a, b) == transport.OverP2P
}

// indices returns the indices of all pairs.
func (p *pairs) indices() []int {
	var list []int
	for b := range p.size {
		for a := range b {
			list = append(list, p.pair(a, b))
		}
	}
	return list
}
