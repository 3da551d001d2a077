package choice

import (
	"slices"

	"github.com/ringo-go/ringo/sched"
)

// A Topology is how ranks lie on hosts. Other packages make it by TopologyOf or Blocks alone.
//
// Schedules are made as if ranks lay host after host. Rank Order[i] plays the part of rank i, so
// that a ring leaves a host once. Order is nil where ranks lie so.
type Topology struct {
	Ranks int
	Hosts []int // ranks of each host, two hosts or more; nil: all are on one
	Order []sched.Rank

	wire  Wire   // between hosts
	costs *costs // of algorithms across hosts; nil: to be found
}

// Over is the topology whose hosts are connected by w, which must be the same on all ranks.
func (t Topology) Over(w Wire) Topology {
	t.wire, t.costs = w, costsOf(t.Hosts, w)
	return t
}

// TopologyOf finds how ranks lie, given the identity of each rank's host. The hosts follow
// each other as their first ranks do.
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
	for _, h := range names {
		t.Order = append(t.Order, ranks[h]...)
		if len(names) > 1 {
			t.Hosts = append(t.Hosts, len(ranks[h]))
		}
	}
	if slices.IsSorted(t.Order) {
		t.Order = nil
	}
	return t
}

// Blocks is the topology of n ranks in blocks of local on a host, of which the last may be
// shorter; local 0 is all on one.
func Blocks(n, local int) Topology {
	t := Topology{Ranks: n}
	if local > 0 && local < n {
		for left := n; left > 0; left -= local {
			t.Hosts = append(t.Hosts, min(left, local))
		}
	}
	return t
}

// most is how many ranks a host has at most.
func (t Topology) most() int {
	if t.Hosts == nil {
		return t.Ranks
	}
	return slices.Max(t.Hosts)
}

// Nodes is the number of hosts.
func (t Topology) Nodes() int { return max(1, len(t.Hosts)) }

// grouped reports whether hierarchy has something to gain: several hosts, and one of them with
// more than one rank.
func (t Topology) grouped() bool { return len(t.Hosts) > 1 && len(t.Hosts) < t.Ranks }

// Columns is how many ranks of each host speak with other hosts in schedules with hierarchy.
func (t Topology) Columns() int {
	if !t.grouped() {
		return 1
	}
	return slices.Min(t.Hosts)
}

// assign gives a schedule that is made for ranks in order to the ranks as they lie.
func (t Topology) assign(s sched.Schedule) sched.Schedule {
	if t.Order == nil {
		return s
	}
	return sched.Relabel(s, t.Order)
}

// part is the part that a rank plays in a schedule that assign gives to the ranks.
func (t Topology) part(r sched.Rank) sched.Rank {
	if i := slices.Index(t.Order, r); i >= 0 {
		return sched.Rank(i)
	}
	return r
}
