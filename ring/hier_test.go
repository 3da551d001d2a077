package ring_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/schedtest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/hier"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

// grids calls f for every number of nodes and of ranks in a node that make at
// most 64 ranks, or 32, or 24 under the race detector.
func grids(f func(nodes, local int)) {
	most := tier.Count(32, schedtest.MaxRanks)
	if tier.Race {
		most = 24
	}
	for nodes := 1; nodes <= most; nodes++ {
		for local := 1; nodes*local <= most; local++ {
			f(nodes, local)
		}
	}
}

func TestHierProofs(t *testing.T) {
	t.Run("AllReduce", func(t *testing.T) {
		grids(func(nodes, local int) {
			across := []sched.Schedule{ring.AllReduce{N: nodes}, tree.AllReduce{N: nodes}, direct.RecursiveDoubling{N: nodes}}
			s := hier.AllReduce(ring.ReduceScatter{N: local}, across[(nodes+local)%3], direct.AllGather{N: local})
			schedtest.ProveOne(t, sched.AllReduce, s)
		})
	})
	t.Run("AllGather", func(t *testing.T) {
		grids(func(nodes, local int) {
			schedtest.ProveOne(t, sched.AllGather, hier.AllGather(direct.LogAllGather{N: nodes}, ring.AllGather{N: local}))
		})
	})
	t.Run("ReduceScatter", func(t *testing.T) {
		grids(func(nodes, local int) {
			schedtest.ProveOne(t, sched.ReduceScatter,
				hier.ReduceScatter(ring.ReduceScatter{N: local}, direct.LogReduceScatter{N: nodes}))
		})
	})
	t.Run("AlltoAll", func(t *testing.T) {
		grids(func(nodes, local int) {
			schedtest.ProveOne(t, sched.AlltoAll, hier.AlltoAll(direct.AlltoAll{N: nodes}, direct.AlltoAll{N: local}))
		})
	})
	t.Run("Broadcast", func(t *testing.T) {
		grids(func(nodes, local int) {
			root := sched.Rank(nodes * local / 2)
			q, l := root/sched.Rank(local), root%sched.Rank(local)
			s := hier.Broadcast(tree.Broadcast{N: nodes, Root: q}, ring.Broadcast{N: local, Root: l}, root)
			schedtest.ProveOne(t, sched.Broadcast(root), s)
		})
	})
	t.Run("Reduce", func(t *testing.T) {
		grids(func(nodes, local int) {
			root := sched.Rank(nodes * local / 2)
			q, l := root/sched.Rank(local), root%sched.Rank(local)
			s := hier.Reduce(tree.Reduce{N: local, Root: l}, ring.Reduce{N: nodes, Root: q}, root)
			schedtest.ProveOne(t, sched.Reduce(root), s)
		})
	})
}

// A hierarchy of hierarchies: racks of nodes of ranks.
func TestHierNested(t *testing.T) {
	nodes := hier.AllReduce(ring.ReduceScatter{N: 3}, ring.AllReduce{N: 4}, ring.AllGather{N: 3})
	s := hier.AllReduce(ring.ReduceScatter{N: 2}, nodes, ring.AllGather{N: 2})
	schedtest.ProveOne(t, sched.AllReduce, s)
	require.Equal(t, 24, s.Shape().Ranks)
}

func TestHierGoldens(t *testing.T) {
	schedtest.Golden(t, "hier/allreduce", hier.AllReduce(ring.ReduceScatter{N: 2}, ring.AllReduce{N: 2},
		ring.AllGather{N: 2}))
	schedtest.Golden(t, "hier/alltoall", hier.AlltoAll(direct.AlltoAll{N: 2}, direct.AlltoAll{N: 2}))
	schedtest.Golden(t, "hier/allgather", hier.AllGather(ring.AllGather{N: 2}, ring.AllGather{N: 2}))
}

// Between nodes a rank sends 2(N-1)/N of a share of 1/L of the data, where a
// flat ring sends 2(n-1)/n of the data over the link to the next node.
func TestHierBytesBetweenNodes(t *testing.T) {
	const nodes, local = 4, 8
	s := hier.AllReduce(ring.ReduceScatter{N: local}, ring.AllReduce{N: nodes}, ring.AllGather{N: local})
	for r := range sched.Rank(nodes * local) {
		sent := 0
		for i := range s.Len(r) {
			if to := s.At(r, i).Send; to != sched.Nobody && to/local != r/local {
				sent++
			}
		}
		require.Equal(t, 2*(nodes-1), sent, "rank %d, in chunks of 1/(N·L) of the data", r)
	}
}

func TestHierShapesThatDoNotFit(t *testing.T) {
	for name, f := range map[string]func(){
		"scratch in a half": func() { // its scratch would hold chunks of other lengths
			hier.AllReduce(direct.LogReduceScatter{N: 8}, ring.AllReduce{N: 2}, ring.AllGather{N: 8})
		},
		"other local sizes": func() {
			hier.AllReduce(ring.ReduceScatter{N: 8}, ring.AllReduce{N: 2}, ring.AllGather{N: 4})
		},
		"an all-reduce for an all-gather": func() { hier.AllGather(ring.AllReduce{N: 2}, ring.AllGather{N: 2}) },
	} {
		t.Run(name, func(t *testing.T) { require.Panics(t, f) })
	}
}

func Example_hierAllReduce() {
	s := hier.AllReduce(ring.ReduceScatter{N: 8}, tree.AllReduce{N: 4}, ring.AllGather{N: 8})
	fmt.Println(s.Shape().Ranks, sched.Check(s, sched.AllReduce, 2, true))
	// Output: 32 <nil>
}
