package choice

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/sched"
)

func TestTopology(t *testing.T) {
	for _, tc := range []struct {
		hosts string
		want  Topology
	}{
		{"a", Topology{1, 1}},
		{"aaaa", Topology{4, 4}},
		{"abcd", Topology{4, 4}},     // one a node: nothing to gain
		{"aabb", Topology{4, 2}},     //
		{"aabbcc", Topology{6, 2}},   //
		{"aaabbb", Topology{6, 3}},   //
		{"aabbb", Topology{5, 5}},    // uneven
		{"abab", Topology{4, 4}},     // not in blocks
		{"aabbaa", Topology{6, 6}},   // a node in two blocks
		{"aabcbc", Topology{6, 6}},   //
		{"aaaabbbb", Topology{8, 4}}, //
	} {
		var hosts []string
		for _, h := range tc.hosts {
			hosts = append(hosts, string(h))
		}
		require.Equal(t, tc.want, TopologyOf(hosts), tc.hosts)
	}
}

// Whatever is chosen, or asked for, the book has it and it has the right number
// of ranks.
func TestEveryChoiceHasATable(t *testing.T) {
	for _, topo := range []Topology{{1, 1}, {2, 2}, {3, 3}, {8, 8}, {16, 16}, {4, 2}, {12, 4}} {
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

// Hierarchy through the book is proved too, not only its parts.
func TestHierarchyIsProved(t *testing.T) {
	goals := map[call.Kind]sched.Goal{
		call.AllReduce: sched.AllReduce, call.AllGather: sched.AllGather, call.ReduceScatter: sched.ReduceScatter,
		call.Reduce: sched.Reduce(3), call.Broadcast: sched.Broadcast(3),
	}
	for _, topo := range []Topology{{4, 2}, {6, 2}, {6, 3}, {12, 4}} {
		for kind, goal := range goals {
			for _, inPlace := range []bool{false, true} {
				s := Key{Kind: kind, Algo: call.Hier, Peer: 3}.Schedule(topo)
				require.NoError(t, sched.Check(s, goal, 2, inPlace), "%v on %v", kind, topo)
			}
		}
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
	require.Equal(t, "hier", ch.Algo)
	for _, bad := range []func() (Choice, error){
		func() (Choice, error) { return Explain(call.AllReduce, 0, 0, 1, 0, Options{}) },
		func() (Choice, error) { return Explain(call.Send, 2, 0, 1, 0, Options{}) },
		func() (Choice, error) { return Explain(call.Broadcast, 2, 0, 1, 2, Options{}) },
		func() (Choice, error) { return Explain(call.AllReduce, 2, 0, 1, 0, Options{Algo: "x"}) },
	} {
		_, err := bad()
		require.ErrorIs(t, err, call.ErrInvalid)
	}
}
