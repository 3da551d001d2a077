package ringo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/sched"
)

func TestTopology(t *testing.T) {
	for _, tc := range []struct {
		hosts string
		want  topology
	}{
		{"a", topology{1, 1}},
		{"aaaa", topology{4, 4}},
		{"abcd", topology{4, 4}},     // one a node: nothing to gain
		{"aabb", topology{4, 2}},     //
		{"aabbcc", topology{6, 2}},   //
		{"aaabbb", topology{6, 3}},   //
		{"aabbb", topology{5, 5}},    // uneven
		{"abab", topology{4, 4}},     // not in blocks
		{"aabbaa", topology{6, 6}},   // a node in two blocks
		{"aabcbc", topology{6, 6}},   //
		{"aaaabbbb", topology{8, 4}}, //
	} {
		var hosts []string
		for _, h := range tc.hosts {
			hosts = append(hosts, string(h))
		}
		require.Equal(t, tc.want, topologyOf(hosts), tc.hosts)
	}
}

// Whatever is chosen, or asked for, the book has it and it has the right number
// of ranks.
func TestEveryChoiceHasATable(t *testing.T) {
	for _, topo := range []topology{{1, 1}, {2, 2}, {3, 3}, {8, 8}, {16, 16}, {4, 2}, {12, 4}} {
		for kind := range kinds {
			for bytes := 0; bytes < 1<<28; bytes = bytes*4 + 8 {
				for forced := range algos {
					a, reason := choosePlan(kind, topo, bytes, forced)
					require.NotEmpty(t, reason)
					s := programKey{kind: kind, algo: a}.schedule(topo)
					require.Equal(t, topo.ranks, s.Shape().Ranks, "%v %v %v", kind, a, topo)
				}
			}
		}
	}
}

// Hierarchy through the book is proved too, not only its parts.
func TestHierarchyIsProved(t *testing.T) {
	goals := map[Kind]sched.Goal{
		KindAllReduce: sched.AllReduce, KindAllGather: sched.AllGather, KindReduceScatter: sched.ReduceScatter,
		KindReduce: sched.Reduce(3), KindBroadcast: sched.Broadcast(3),
	}
	for _, topo := range []topology{{4, 2}, {6, 2}, {6, 3}, {12, 4}} {
		for kind, goal := range goals {
			for _, inPlace := range []bool{false, true} {
				s := programKey{kind: kind, algo: algoHier, peer: 3}.schedule(topo)
				require.NoError(t, sched.Check(s, goal, 2, inPlace), "%v on %v", kind, topo)
			}
		}
	}
}

func TestExplain(t *testing.T) {
	ch, err := Explain(KindAllReduce, 4, 0, 1<<20, 0, Config{})
	require.NoError(t, err)
	require.Equal(t, "ring", ch.Algo)
	require.Contains(t, ch.Others, "tree")
	require.NotContains(t, ch.Others, "hier")
	require.Equal(t, 7, ch.Schedule.Len(0))
	ch, err = Explain(KindAllReduce, 4, 0, 1<<20, 0, Config{Algo: "tree"})
	require.NoError(t, err)
	require.Equal(t, "tree", ch.Algo)
	ch, err = Explain(KindAllReduce, 8, 4, 1<<20, 0, Config{})
	require.NoError(t, err)
	require.Equal(t, "hier", ch.Algo)
	for _, bad := range []func() (Choice, error){
		func() (Choice, error) { return Explain(KindAllReduce, 0, 0, 1, 0, Config{}) },
		func() (Choice, error) { return Explain(KindSend, 2, 0, 1, 0, Config{}) },
		func() (Choice, error) { return Explain(KindBroadcast, 2, 0, 1, 2, Config{}) },
		func() (Choice, error) { return Explain(KindAllReduce, 2, 0, 1, 0, Config{Algo: "x"}) },
	} {
		_, err := bad()
		require.ErrorIs(t, err, ErrInvalid)
	}
}

// A sign survives its stamp, whatever is in it.
func TestSignRoundTrip(t *testing.T) {
	for _, s := range []sign{
		{}, {seq: 1<<32 - 1, kind: KindAlltoAllv, typ: Float8E5M2, op: 9, algo: algos - 1, where: maxWhere, count: maxCount - 1, root: 1<<17 - 1},
		{kind: KindSend, count: 5, root: -1}, {seq: 7, kind: KindReduce, typ: Float64, count: 0, root: 0},
	} {
		require.Equal(t, s, signOf(s.stamp()), fmt.Sprint(s))
	}
}
