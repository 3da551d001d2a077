package rendezvous

import "slices"

// A Land is which ranks are on one host, and how hosts are reached. Without Places all ranks are on one host.
type Land struct {
	Places    []int // by rank
	Hub       int   // the place of the process that serves
	Addresses []string
	Silence   string // how it is said that a host answers nothing
}

// at are the ranks of a place.
func (g *Land) at(place int) (ranks []int) {
	for r, p := range g.Places {
		if p == place {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// of is the place of a rank, or of the hub for -1.
func (g *Land) of(rank int) int {
	if rank < 0 {
		return g.Hub
	}
	return g.Places[rank]
}

// Several reports whether there are hosts besides the hub's.
func (g *Land) Several() bool {
	return slices.ContainsFunc(g.Places, func(p int) bool { return p != g.Hub })
}

// far reports whether a rank is on another host than the hub.
func (g *Land) far(rank int) bool { return g.Several() && g.Places[rank] != g.Hub }

// apart reports whether one of some losses is between two hosts.
func (g *Land) apart(losses []loss) bool {
	return g.Several() && slices.ContainsFunc(losses, func(l loss) bool { return g.of(l.from) != g.of(l.peer) })
}
