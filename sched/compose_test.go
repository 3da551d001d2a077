package sched_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/internal/test/schedtest"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

// zoo holds a schedule for n ranks of every kind, and its goal when rank root is
// played by rank as.
var zoo = []func(n int, root, as sched.Rank) (sched.Schedule, sched.Goal){
	func(n int, _, _ sched.Rank) (sched.Schedule, sched.Goal) {
		return ring.AllReduce{N: n}, sched.AllReduce
	},
	func(n int, _, _ sched.Rank) (sched.Schedule, sched.Goal) {
		return tree.AllReduce{N: n}, sched.AllReduce
	},
	func(n int, _, _ sched.Rank) (sched.Schedule, sched.Goal) {
		return direct.OneShot{N: n}, sched.AllReduce
	},
	func(n int, _, _ sched.Rank) (sched.Schedule, sched.Goal) {
		return direct.HalvingDoubling{N: n}, sched.AllReduce
	},
	func(n int, _, _ sched.Rank) (sched.Schedule, sched.Goal) {
		return ring.AllGather{N: n}, sched.AllGather
	},
	func(n int, _, _ sched.Rank) (sched.Schedule, sched.Goal) {
		return direct.LogReduceScatter{N: n}, sched.ReduceScatter
	},
	func(n int, _, _ sched.Rank) (sched.Schedule, sched.Goal) {
		return direct.AlltoAll{N: n}, sched.AlltoAll
	},
	func(n int, root, as sched.Rank) (sched.Schedule, sched.Goal) {
		return tree.Broadcast{N: n, Root: root}, sched.Broadcast(as)
	},
	func(n int, root, as sched.Rank) (sched.Schedule, sched.Goal) {
		return tree.Reduce{N: n, Root: root}, sched.Reduce(as)
	},
	func(n int, root, as sched.Rank) (sched.Schedule, sched.Goal) {
		return direct.Gather{N: n, Root: root}, sched.Gather(as)
	},
	func(n int, root, as sched.Rank) (sched.Schedule, sched.Goal) {
		return direct.Scatter{N: n, Root: root}, sched.Scatter(as)
	},
}

func TestRelabelAndSplitKeepTheGoal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		ranks := make([]sched.Rank, n)
		for i := range ranks {
			ranks[i] = sched.Rank(i)
		}
		order := rapid.Permutation(ranks).Draw(t, "order")
		root := rapid.SampledFrom(ranks).Draw(t, "root")
		parts := rapid.IntRange(1, 3).Draw(t, "parts")
		inPlace := rapid.Bool().Draw(t, "in place")

		s, goal := rapid.SampledFrom(zoo).Draw(t, "schedule")(n, root, order[root])
		inPlace = inPlace && goal != sched.AlltoAll
		require.NoError(t, sched.Check(sched.Relabel(sched.Split(s, parts), order), goal, 2, inPlace))
		require.NoError(t, sched.Check(sched.Split(sched.Relabel(s, order), parts), goal, 2, inPlace))
	})
}

func TestRelabelRunsAlongTheOrder(t *testing.T) {
	s := sched.Relabel(ring.Broadcast{N: 4, Root: 0}, []sched.Rank{2, 0, 3, 1})
	require.Equal(t, sched.Step{Recv: nobody, Src: in(0), Dst: out(0), Send: 0}, s.At(2, 0))
	require.Equal(t, sched.Step{Recv: 2, Dst: out(0), Send: 3}, s.At(0, 0))
	require.Equal(t, sched.Step{Recv: 3, Dst: out(0), Send: nobody}, s.At(1, 0))

	for name, order := range map[string][]sched.Rank{
		"too short": {0, 1, 2}, "twice": {0, 1, 1, 2}, "out of range": {0, 1, 2, 4}, "negative": {0, 1, 2, -1},
	} {
		t.Run(name, func(t *testing.T) {
			require.Panics(t, func() { sched.Relabel(ring.Broadcast{N: 4}, order) })
		})
	}
}

func TestThen(t *testing.T) {
	twice := sched.Then(ring.Broadcast{N: 5, Root: 0}, ring.Broadcast{N: 5, Root: 3})
	schedtest.ProveOne(t, sched.Broadcast(0), twice)

	// What a rank has in Out already is not stored again, only sent.
	require.Equal(t, sched.Step{Recv: nobody, Src: out(0), Send: 4}, twice.At(3, 1))

	// The second all-reduce of sums counts every contribution n times.
	again := sched.Then(direct.OneShot{N: 2}, direct.OneShot{N: 2})
	require.ErrorContains(t, sched.Check(again, sched.AllReduce, 2, false), "twice")

	require.Panics(t, func() { sched.Then(ring.Broadcast{N: 2}, ring.Broadcast{N: 3}) })
	require.Panics(t, func() { sched.Then(ring.ReduceScatter{N: 2}, ring.AllGather{N: 2}) })
}

func TestBeside(t *testing.T) {
	shape := sched.Shape{Ranks: 5, In: 1, Out: 1, Tmp: 1}
	s := sched.Beside(shape,
		sched.Group{Schedule: ring.Reduce{N: 2, Root: 0}, Members: []sched.Rank{3, 1}},
		sched.Group{Schedule: ring.Broadcast{N: 2, Root: 1}, Members: []sched.Rank{0, 2}},
	)
	require.Equal(t, shape, s.Shape())
	require.Equal(t, sched.Step{Recv: 1, Src: in(0), Dst: out(0), Send: nobody}, s.At(3, 0))
	require.Equal(t, sched.Step{Recv: nobody, Src: in(0), Send: 3}, s.At(1, 0))
	require.Equal(t, sched.Step{Recv: nobody, Src: in(0), Dst: out(0), Send: 0}, s.At(2, 0))
	require.Zero(t, s.Len(4), "a rank in no group has no steps")

	two := ring.Broadcast{N: 2}
	for name, groups := range map[string][]sched.Group{
		"a rank in two groups": {{Schedule: two, Members: []sched.Rank{0, 1}}, {Schedule: two, Members: []sched.Rank{1, 2}}},
		"a rank out of range":  {{Schedule: two, Members: []sched.Rank{0, 5}}},
		"too few members":      {{Schedule: two, Members: []sched.Rank{0}}},
	} {
		t.Run(name, func(t *testing.T) { require.Panics(t, func() { sched.Beside(shape, groups...) }) })
	}
}

// A chain of n-1 hops over data in m parts is a pipeline of n-2+m hops.
func TestSplitPipelines(t *testing.T) {
	cost, err := sched.CostOf(sched.Split(ring.Broadcast{N: 8}, 4), 2)
	require.NoError(t, err)
	require.Equal(t, 4, cost.Sent)
	require.Equal(t, 4, cost.Steps)
	require.Equal(t, 7, cost.Hops, "parts do not wait for each other")
}
