// Topologies, and the schedules of the book on them.

package choice

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/ring/book"
	"github.com/ringo-go/ringo/sched"
)

func TestTopology(t *testing.T) {
	for _, tc := range []struct {
		hosts string
		want  Topology
	}{
		{"a", Topology{Ranks: 1}},
		{"aaaa", Topology{Ranks: 4}},
		{"abcd", Topology{Ranks: 4, Hosts: []int{1, 1, 1, 1}}},
		{"aabb", Topology{Ranks: 4, Hosts: []int{2, 2}}},
		{"aabbb", Topology{Ranks: 5, Hosts: []int{2, 3}}},
		{"aaaabb", Topology{Ranks: 6, Hosts: []int{4, 2}}},
		{"abab", Topology{Ranks: 4, Hosts: []int{2, 2}, Order: []sched.Rank{0, 2, 1, 3}}},
		{"aabbaa", Topology{Ranks: 6, Hosts: []int{4, 2}, Order: []sched.Rank{0, 1, 4, 5, 2, 3}}},
		{"aabcbc", Topology{Ranks: 6, Hosts: []int{2, 2, 2}, Order: []sched.Rank{0, 1, 2, 4, 3, 5}}},
		{"abcab", Topology{Ranks: 5, Hosts: []int{2, 2, 1}, Order: []sched.Rank{0, 3, 1, 4, 2}}},
	} {
		var hosts []string
		for _, h := range tc.hosts {
			hosts = append(hosts, string(h))
		}
		require.Equal(t, tc.want, TopologyOf(hosts), tc.hosts)
	}
	require.Equal(t, []int{8, 8, 8, 7}, Blocks(31, 8).Hosts, "the last host may be the short one")
	require.Equal(t, TopologyOf(strings.Split("aaabbbb", "")).Over(Wire{}),
		TopologyOf(strings.Split("aaabbbb", "")).Over(Wire{}))
	require.Nil(t, Blocks(8, 8).Hosts)
}

// The book has a table of every algorithm that is chosen, asked for or not, with the right
// number of ranks.
func TestEveryChoiceHasATable(t *testing.T) {
	for _, topo := range []Topology{{Ranks: 1}, {Ranks: 2}, {Ranks: 3}, {Ranks: 8}, {Ranks: 16}, Blocks(4, 2),
		Blocks(12, 4)} {
		for kind := call.Barrier; kind.Valid(); kind++ {
			for bytes := 0; bytes < 1<<28; bytes = bytes*4 + 8 {
				for forced := range call.Algos {
					a, reason := Threshold(kind, topo, bytes, forced)
					require.NotEmpty(t, reason)
					s := Key{Kind: kind, Algo: a}.Schedule(topo)
					require.Equal(t, topo.Ranks, s.Shape().Ranks, "%v %v %v", kind, a, topo)
				}
			}
		}
	}
}

// Every algorithm is right for ranks that lie in any order, in place too.
func TestEveryOrderIsProved(t *testing.T) {
	for _, hosts := range []string{"abab", "abcab", "aabbaa", "abbabaab", "abcabcabc"} {
		topo := TopologyOf(strings.Split(hosts, ""))
		require.NotNil(t, topo.Order)
		for kind := call.Barrier; kind.Valid(); kind++ {
			g := goal(kind, 2)
			if g == nil {
				continue
			}
			for _, table := range tables(kind) {
				if !table.offers(topo) {
					continue
				}
				s := Key{Kind: kind, Algo: table.algo, Peer: 2}.Schedule(topo)
				require.NoError(t, sched.Check(s, *g, 2, false), "%v by %v on %s", kind, table.algo, hosts)
				if kind != call.AlltoAll {
					require.NoError(t, sched.Check(s, *g, 2, true), "%v by %v on %s, in place", kind, table.algo, hosts)
				}
			}
		}
	}
}

// A ring leaves each host once, however the ranks lie.
func TestRingFollowsHosts(t *testing.T) {
	for _, hosts := range []string{"abababab", "aaabbbbb", "abcabcabcab"} {
		host := strings.Split(hosts, "")
		s := Key{Kind: call.AllReduce, Algo: call.Ring}.Schedule(TopologyOf(host))
		leaves := 0
		for r := range sched.Rank(len(host)) {
			if to := s.At(r, 0).Send; host[to] != host[r] {
				leaves++
			}
		}
		require.Equal(t, len(slices.Compact(slices.Sorted(slices.Values(host)))), leaves, hosts)
	}
}

func TestExplain(t *testing.T) {
	ch, err := Explain(call.AllReduce, 4, 0, 1<<20, 0, Options{})
	require.NoError(t, err)
	require.Equal(t, "ring", ch.Algo)
	require.Contains(t, ch.Others, "tree")
	require.NotContains(t, ch.Others, "hier")
	require.Equal(t, 7, ch.Schedule.Len(0))
	ch, err = Explain(call.AllReduce, 4, 0, 1<<20, 0, Options{Algo: "tree"})
	require.NoError(t, err)
	require.Equal(t, "tree", ch.Algo)
	ch, err = Explain(call.AllReduce, 8, 4, 1<<20, 0, Options{})
	require.NoError(t, err)
	require.Equal(t, "hierlog", ch.Algo)
	require.Contains(t, ch.Reason, "sim model")
	_, err = Explain(call.Send, 2, 0, 1, 0, Options{})
	require.ErrorIs(t, err, call.ErrInvalid)
}

// Each line of the book is the schedule of a key, in the order of the book.
func TestTheBookIsChosenFrom(t *testing.T) {
	for _, c := range book.Collectives {
		kind := call.Barrier
		for !strings.EqualFold(kind.String(), c.Name) {
			kind++
			require.True(t, kind.Valid(), "no kind is %s", c.Name)
		}
		require.Equal(t, c.Rooted, kind.Rooted())
		require.Equal(t, c.Algorithms[0].Name, Default(kind).String())
		require.Len(t, tables(kind), len(c.Algorithms))
		for _, a := range c.Algorithms {
			algo, err := call.ParseAlgo(a.Name)
			require.NoError(t, err)
			topo := Blocks(12, 4)
			want, err := a.Schedule(topo.Ranks, 4, 7)
			require.NoError(t, err)
			key := Key{Kind: kind, Algo: algo, Peer: 7}
			require.True(t, key.Exists(topo))
			require.Equal(t, a.Nodes == nil, key.Exists(Blocks(12, 0)))
			require.Equal(t, sched.Format(want), sched.Format(key.Schedule(topo)))
		}
	}
	require.Less(t, call.Algos, call.ByRank, "the book has more names than signs have room for")
}
