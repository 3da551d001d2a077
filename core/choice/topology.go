package choice

import "github.com/ringo-go/ringo/sched"

// A Topology is how ranks lie on nodes: in groups of Local ranks, each on one node. Local is
// Ranks where hierarchy has nothing to gain: all ranks on one node, one rank on each, or
// nodes whose numbers of ranks have no common divisor.
//
// Schedules are made as if ranks lay group after group, and are given to the ranks in Order,
// so that a ring leaves a node once. nil: they lie so.
type Topology struct {
	Ranks, Local int
	Order        []sched.Rank

	wire  Wire   // between nodes
	times *times // of algorithms on several nodes; nil: to be found
}

// Over is the topology whose nodes are connected by w, as all ranks say it.
func (t Topology) Over(w Wire) Topology {
	t.wire, t.times = w, timesOf(t.Ranks, t.Local, w)
	return t
}

// TopologyOf finds how ranks lie, given the identity of each rank's host. The hosts follow
// each other as their first ranks do. A host with more ranks than another one is several
// groups: 8, 8 and 4 ranks are five groups of 4.
func TopologyOf(hosts []string) Topology {
	var names []string
	ranks := map[string][]sched.Rank{}
	for r, h := range hosts {
		if ranks[h] == nil {
			names = append(names, h)
		}
		ranks[h] = append(ranks[h], sched.Rank(r))
	}
	t := Topology{Ranks: len(hosts)}
	inOrder := true
	for _, h := range names {
		t.Local = divisor(t.Local, len(ranks[h]))
		for _, r := range ranks[h] {
			inOrder = inOrder && int(r) == len(t.Order)
			t.Order = append(t.Order, r)
		}
	}
	if inOrder {
		t.Order = nil
	}
	if t.Local == 1 {
		t.Local = t.Ranks
	}
	return t
}

// divisor is the greatest common one.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Nodes is the number of groups.
func (t Topology) Nodes() int { return t.Ranks / t.Local }

// assign gives a schedule that is made for ranks in order to the ranks as they lie.
func (t Topology) assign(s sched.Schedule) sched.Schedule {
	if t.Order == nil {
		return s
	}
	return sched.Relabel(s, t.Order)
}

// part is the part that a rank plays in a schedule that assign gives to the ranks.
func (t Topology) part(r sched.Rank) sched.Rank {
	for i, x := range t.Order {
		if x == r {
			return sched.Rank(i)
		}
	}
	return r
}

// Blocks is the topology of n ranks in blocks of local on a node; 0, 1 or a number
// that does not divide n is all on one.
func Blocks(n, local int) Topology {
	if local > 1 && n%local == 0 {
		return Topology{Ranks: n, Local: local}
	}
	return Topology{Ranks: n, Local: n}
}
