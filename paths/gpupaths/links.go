package gpupaths

import (
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// ownLinks connect a rank to itself, in memory of the shape of one rank. That rank is rank 0
// there.
type ownLinks struct{ grid.Links }

func (l ownLinks) Send(sched.Rank) (grid.End, error) { return l.Links.Send(0) }
func (l ownLinks) Recv(sched.Rank) (grid.End, error) { return l.Links.Recv(0) }

// Send is part of grid.Links.
func (n *Net) Send(to sched.Rank) (grid.End, error) {
	l, err := n.linksTo(to)
	if err != nil {
		return grid.End{}, err
	}
	return l.Send(to)
}

// Recv is part of grid.Links.
func (n *Net) Recv(from sched.Rank) (grid.End, error) {
	l, err := n.linksTo(from)
	if err != nil {
		return grid.End{}, err
	}
	return l.Recv(from)
}

// A gpuLink gives the ends of queues to and from a peer.
type gpuLink interface {
	Send(to sched.Rank) (grid.End, error)
	Recv(from sched.Rank) (grid.End, error)
}

func (n *Net) linksTo(peer sched.Rank) (gpuLink, error) {
	if peer < 0 || int(peer) >= n.size {
		return nil, fmt.Errorf("rank %d: there are %d", peer, n.size)
	}
	if int(peer) == n.rank {
		return n.own, nil
	}
	switch n.path(n.rank, int(peer)) {
	case transport.OverP2P:
		return n.near, nil
	case transport.OverHost:
		return n.pinned, nil
	case transport.OverBridge:
		return n.bridge, nil
	}
	return nil, fmt.Errorf("no path to rank %d", peer)
}

// Geometry is part of grid.Links.
func (n *Net) Geometry(from, to sched.Rank) grid.Geometry {
	if from != to {
		switch n.path(int(from), int(to)) {
		case transport.OverHost:
			return n.geometry.pinned.Geometry(from, to)
		case transport.OverBridge:
			return n.geometry.bridge
		}
	}
	return n.board.Geometry(from, to)
}

// Mail is part of grid.Links: nil unless all pairs have P2P.
func (n *Net) Mail() ([]uint64, int) {
	if !n.only(transport.OverP2P) {
		return nil, 0
	}
	return n.near.Mail()
}

// Gates is part of grid.Links: nil unless all pairs have P2P.
func (n *Net) Gates() []uint64 {
	if !n.only(transport.OverP2P) {
		return nil
	}
	return n.near.Gates()
}

// Signs is part of grid.Links: nil unless all pairs have the same kind of memory.
func (n *Net) Signs() []uint64 {
	switch {
	case n.size > 1 && n.only(transport.OverHost):
		return n.pinned.Signs()
	case n.only(transport.OverP2P) && n.ownMemory.Ranks == n.size:
		return n.near.Signs()
	}
	return nil
}

// Via names the path to a peer.
func (n *Net) Via(peer int) string {
	if peer < 0 || peer >= n.size || peer == n.rank {
		return ""
	}
	p := n.path(n.rank, peer)
	if p == transport.OverBridge {
		return "bridge over " + n.bridge.links.Via(peer)
	}
	return p.String()
}

// Notes are lines that say which path leads to each rank, and why there is no better one.
func (n *Net) Notes() []string {
	if n.size == 1 {
		return []string{"GPU memory: p2p"}
	}
	var notes []string
	ranks := map[string][]string{} // by path and reason
	for r := range n.size {
		if r == n.rank {
			continue
		}
		what := n.Via(r)
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
	return append(notes, sharingNotes(n.host.Profiles)...)
}
