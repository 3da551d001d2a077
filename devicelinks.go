package ringo

import (
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/sched"
)

// alone is the connection of a rank to itself, in memory that has no other.
type alone struct{ grid.Links }

func (l alone) Send(sched.Rank) (grid.End, error) { return l.Links.Send(0) }
func (l alone) Recv(sched.Rank) (grid.End, error) { return l.Links.Recv(0) }

// Send is part of grid.Links.
func (n *deviceNet) Send(to sched.Rank) (grid.End, error) {
	l, err := n.linksTo(to)
	if err != nil {
		return grid.End{}, err
	}
	return l.Send(to)
}

// Recv is part of grid.Links.
func (n *deviceNet) Recv(from sched.Rank) (grid.End, error) {
	l, err := n.linksTo(from)
	if err != nil {
		return grid.End{}, err
	}
	return l.Recv(from)
}

// A gpuLink makes the ends of queues.
type gpuLink interface {
	Send(to sched.Rank) (grid.End, error)
	Recv(from sched.Rank) (grid.End, error)
}

func (n *deviceNet) linksTo(peer sched.Rank) (gpuLink, error) {
	if peer < 0 || int(peer) >= n.size {
		return nil, fmt.Errorf("rank %d: there are %d", peer, n.size)
	}
	if int(peer) == n.rank {
		return n.own, nil
	}
	switch n.path(n.rank, int(peer)) {
	case overP2P:
		return n.near, nil
	case overHost:
		return n.pinned, nil
	case overBridge:
		return n.bridge, nil
	}
	return nil, fmt.Errorf("no path to rank %d", peer)
}

// Geometry is part of grid.Links.
func (n *deviceNet) Geometry(from, to sched.Rank) grid.Geometry {
	if from != to {
		switch n.path(int(from), int(to)) {
		case overHost:
			return n.geometry.pinned.Geometry(from, to)
		case overBridge:
			return n.geometry.bridge
		}
	}
	return n.board.Geometry(from, to)
}

// Mail is part of grid.Links: nil unless all pairs have P2P.
func (n *deviceNet) Mail() ([]uint64, int) {
	if !n.only(overP2P) {
		return nil, 0
	}
	return n.near.Mail()
}

// Gates is part of grid.Links: nil unless all pairs have P2P.
func (n *deviceNet) Gates() []uint64 {
	if !n.only(overP2P) {
		return nil
	}
	return n.near.Gates()
}

// Signs is part of grid.Links: nil unless all pairs have the same kind of memory.
func (n *deviceNet) Signs() []uint64 {
	switch {
	case n.size > 1 && n.only(overHost):
		return n.pinned.Signs()
	case n.only(overP2P) && n.ownMemory.Ranks == n.size:
		return n.near.Signs()
	}
	return nil
}

// via names the path to a peer.
func (n *deviceNet) via(peer int) string {
	if peer < 0 || peer >= n.size || peer == n.rank {
		return ""
	}
	p := n.path(n.rank, peer)
	if p == overBridge {
		return "bridge over " + n.bridge.links.via(peer)
	}
	return gpuPathNames[p]
}

// notes says what the paths are, and why not better ones.
func (n *deviceNet) notes() []string {
	if n.size == 1 {
		return []string{"GPU memory: p2p"}
	}
	var notes []string
	ranks := map[string][]string{} // by what is said of them
	for r := range n.size {
		if r == n.rank {
			continue
		}
		what := n.via(r)
		if why := n.against[n.pair(n.rank, r)]; why != "" {
			what += "|" + why
		}
		if ranks[what] == nil {
			notes = append(notes, what)
		}
		ranks[what] = append(ranks[what], fmt.Sprint(r))
	}
	for i, what := range notes {
		list, s := ranks[what], ""
		if len(list) > 1 {
			s = "s"
		}
		path, why, ok := strings.Cut(what, "|")
		notes[i] = fmt.Sprintf("GPU memory: %s with rank%s %s", path, s, strings.Join(list, ", "))
		if ok {
			notes[i] += " (" + why + ")"
		}
	}
	return notes
}
