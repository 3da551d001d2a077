package choice

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/ring/book"
	"github.com/ringo-go/ringo/sched"
)

// layouts calls f with every combination of 2 to most hosts of 1 to most ranks each.
func layouts(most int, f func(hosts []int)) {
	var add func(hosts []int, least int)
	add = func(hosts []int, least int) {
		if len(hosts) > 1 {
			f(hosts)
		}
		for n := least; n <= most && len(hosts) < most; n++ {
			add(append(hosts[:len(hosts):len(hosts)], n), n)
		}
	}
	add(nil, 1)
}

// Hierarchy is proved for hosts of any sizes, up to 6 hosts of up to 6 ranks, whose order and whose roots are drawn;
// a part of them where the tier is not the full one.
func TestUnevenHierarchyIsProved(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	i, proved, every := 0, 0, tier.Count(40, 1)
	if tier.Race { // nothing of it is concurrent
		every = max(every, 4)
	}
	layouts(6, func(hosts []int) {
		if i++; i%every != 0 {
			return
		}
		topo := Topology{Hosts: append([]int(nil), hosts...)}
		r.Shuffle(len(hosts), func(i, j int) { topo.Hosts[i], topo.Hosts[j] = topo.Hosts[j], topo.Hosts[i] })
		for _, n := range hosts {
			topo.Ranks += n
		}
		root := sched.Rank(r.IntN(topo.Ranks))
		for _, c := range book.Collectives {
			for _, a := range c.Algorithms {
				table := table{Algorithm: a}
				if a.Nodes == nil || !table.offers(topo) {
					continue
				}
				s := a.Nodes(topo.Hosts, root)
				for _, inPlace := range []bool{false, true} {
					if inPlace && c.Name == "alltoall" {
						continue
					}
					require.NoError(t, sched.Check(s, c.Goal(root), depth, inPlace), "%s by %s on %v, root %d, in place %v", c.Name,
						a.Name, topo.Hosts, root, inPlace)
					proved++
				}
			}
		}
	})
	require.Greater(t, proved, 300)
}

// Across hosts of 8, 8, 8 and 7 ranks, seven of each send to one rank of another host, an eighth to none.
func TestUnevenHierarchyCrossesOnce(t *testing.T) {
	topo := Topology{Ranks: 31, Hosts: []int{8, 8, 8, 7}}
	s := Key{Kind: call.AllReduce, Algo: call.Hier}.Schedule(topo)
	host := func(r sched.Rank) int { return int(r) / 8 }
	for r := range sched.Rank(31) {
		peers := map[sched.Rank]bool{}
		for i := range s.Len(r) {
			if to := s.At(r, i).Send; to != sched.Nobody && host(to) != host(r) {
				peers[to] = true
			}
		}
		want := 1
		if r%8 == 7 {
			want = 0
		}
		require.Len(t, peers, want, "rank %d", r)
	}
}
