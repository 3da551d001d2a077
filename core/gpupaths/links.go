// Net as a grid.Links, and what it says of its paths.

package gpupaths

import (
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/kernels/collective"
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
	e, err := l.Send(to)
	e.Geometry = n.Geometry(sched.Rank(n.rank), to)
	return e, err
}

// Recv is part of grid.Links.
func (n *Net) Recv(from sched.Rank) (grid.End, error) {
	l, err := n.linksTo(from)
	if err != nil {
		return grid.End{}, err
	}
	e, err := l.Recv(from)
	e.Geometry = n.Geometry(from, sched.Rank(n.rank))
	return e, err
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
	case transport.OverP2P, transport.OverPCIe:
		return n.near, nil
	case transport.OverHost:
		return n.pinned, nil
	case transport.OverBridge:
		return n.bridge, nil
	}
	return nil, fmt.Errorf("no path to rank %d", peer)
}

// Geometry is part of grid.Links. Notes are made of lines: NoteBytes is 0 where there are none.
func (n *Net) Geometry(from, to sched.Rank) grid.Geometry {
	at, dest := n.hosts.number(int(from)), n.hosts.number(int(to))
	here := n.geometry.boards[len(n.hosts.of(int(from)))]
	if from != to {
		switch n.path(int(from), int(to)) {
		case transport.OverHost:
			return here.pinned.Geometry(at, dest)
		case transport.OverBridge:
			return n.bridgeGeometry(int(from), int(to))
		}
	}
	g := here.device.Geometry(at, dest)
	if !n.lines(int(from), int(to)) {
		g.NoteBytes = 0
	}
	return g
}

// bridgeGeometry is the shape of a bridge between two ranks.
func (n *Net) bridgeGeometry(a, b int) grid.Geometry {
	if n.hosts.close(a, b) {
		return n.geometry.near
	}
	return n.geometry.far
}

// Mail is part of grid.Links: at is nil unless all pairs have the same kind of memory and lines are wanted. torn says
// that some lines may tear.
func (n *Net) Mail() (at []uint64, bytes int, torn bool) {
	switch {
	case n.forced == "0" || n.size < 2:
		return nil, 0, false
	case n.all(n.peers):
		at, bytes, _ = n.near.Mail()
	case n.all(func(a, b int) bool { return n.path(a, b) == transport.OverHost }):
		at, bytes, _ = n.pinned.Mail()
	}
	return at, bytes, !n.all(n.lines)
}

// Gates is part of grid.Links: nil unless all GPUs reach each other's memory. Flags of 8 bytes
// and fences are all that it takes, so the link does not matter.
func (n *Net) Gates() []uint64 {
	if !n.all(n.peers) {
		return nil
	}
	return n.near.Gates()
}

// Signs is part of grid.Links: nil unless all pairs have the same kind of memory.
func (n *Net) Signs() []uint64 {
	switch {
	case n.size > 1 && n.all(func(a, b int) bool { return n.path(a, b) == transport.OverHost }):
		return n.pinned.Signs()
	case n.all(n.peers) && n.ownMemory.Ranks == n.size:
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

// about says of the path to a rank which link it takes, or why there is no better one.
func (n *Net) about(peer int) string {
	i := n.pair(n.rank, peer)
	if n.paths[i] == transport.OverBridge {
		if slots := n.bridge.slots.about(peer); slots != "" {
			return n.against[i] + "; " + slots
		}
	}
	if !n.paths[i].Peer() {
		return n.against[i]
	}
	about := string(n.links[i])
	switch {
	case n.forced == "1" && !n.links[i].Whole():
		about += ": lines of 128 bytes may tear; RINGO_LINES=1 takes them as they come"
	case n.forced == "0":
		about += ": no lines of 128 bytes, RINGO_LINES=0"
	case !n.links[i].Whole():
		about += ": lines of 128 bytes may tear there, so they have digests"
	}
	return about
}

// Notes are lines that say which path and link lead to each rank, and why there is no better
// one.
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
		if why := n.about(r); why != "" {
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
	b := n.budget
	if 0 < b.Most && b.Most < collective.MaxBlocks {
		notes = append(notes,
			fmt.Sprintf("GPU memory: kernels of up to %d blocks, this communicator's share of the GPU (RINGO_MAX_CTAS)", b.Most))
	}
	if b.Narrow {
		notes = append(notes,
			fmt.Sprintf("GPU memory: schedules of up to %d lanes, for GPUs that compute beside them; RINGO_CTA_POLICY=latency "+
				"has more", b.Lanes()))
	}
	if b.Least > 0 || b.Policy != choice.PolicyDefault {
		notes = append(notes,
			fmt.Sprintf("GPU memory: kernels of at least %d blocks where there is work for them (RINGO_MIN_CTAS), policy %v "+
				"(RINGO_CTA_POLICY)", max(1, b.Least), b.Policy))
	}
	return append(notes, sharingNotes(n.host.Profiles)...)
}
