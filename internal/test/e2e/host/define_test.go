package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

func star(n int, _ sched.Rank) sched.Schedule { return commtest.Star{N: n} }

// lazy claims to be an all-reduce and forgets the last rank.
type lazy struct{ commtest.Star }

func (s lazy) Len(r sched.Rank) int {
	if s.N > 2 && int(r) == s.N-1 {
		return 0
	}
	return s.Star.Len(r)
}

func init() {
	for _, d := range []ringo.Definition{
		{Name: "star", Kind: ringo.KindAllReduce, Schedule: star},
		{Name: "backwards", Kind: ringo.KindAllGather, Schedule: func(n int, _ sched.Rank) sched.Schedule {
			order := make([]sched.Rank, n)
			for r := range order {
				order[r] = sched.Rank(n - 1 - r)
			}
			return sched.Relabel(ring.AllGather{N: n}, order)
		}},
		{Name: "even", Kind: ringo.KindAlltoAll, Ranks: func(n int) bool { return n%2 == 0 },
			Schedule: func(n int, _ sched.Rank) sched.Schedule {
				return direct.AlltoAll{N: n}
			}},
	} {
		if err := ringo.Define(d); err != nil {
			panic(err)
		}
	}
}

func TestDefine(t *testing.T) {
	for _, tc := range []struct {
		d    ringo.Definition
		want string
	}{
		{ringo.Definition{Name: "ring", Kind: ringo.KindAllReduce, Schedule: star}, "there already"},
		{ringo.Definition{Name: "Star", Kind: ringo.KindAllReduce, Schedule: star}, "there already"},
		{ringo.Definition{Name: "two words", Kind: ringo.KindAllReduce, Schedule: star}, "want a word"},
		{ringo.Definition{Name: "none", Kind: ringo.KindAllReduce}, "no Schedule"},
		{ringo.Definition{Name: "message", Kind: ringo.KindSend, Schedule: star}, "not a collective"},
		{ringo.Definition{Name: "lazy", Kind: ringo.KindAllReduce,
			Schedule: func(n int, _ sched.Rank) sched.Schedule { return lazy{commtest.Star{N: n}} }}, "3 ranks"},
	} {
		err := ringo.Define(tc.d)
		require.ErrorIs(t, err, ringo.ErrInvalid)
		require.ErrorContains(t, err, tc.want)
	}
	require.Contains(t, ringo.Algorithms(), "star")
	ch, err := ringo.Explain(ringo.KindAllReduce, 5, 0, 64, 0, ringo.Config{Algo: "star"})
	require.NoError(t, err)
	require.Equal(t, "star", ch.Algo)
	require.NoError(t, sched.Check(ch.Schedule, sched.AllReduce, 2, false))
	ch, err = ringo.Explain(ringo.KindAlltoAll, 5, 0, 64, 0, ringo.Config{Algo: "even"})
	require.NoError(t, err)
	require.Equal(t, "direct", ch.Algo, "it is not for five")

	_, err = ringo.ParsePlan("my.plan", "ringo plan 1\nallreduce 4 any all star\n")
	require.ErrorContains(t, err, "allreduce has no algorithm star; it has ring", "plans are for built-in algorithms")
}

// A defined schedule carries calls out, out of place and in place, on goroutines.
func TestDefinedOnHost(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		for algo, kind := range map[string]ringo.Kind{"star": ringo.KindAllReduce, "backwards": ringo.KindAllGather,
			"even": ringo.KindAlltoAll} {
			by := new(commtest.Algos)
			comms := commtest.Local(t, n, ringo.Config{Algo: algo, SlotBytes: 256, Slots: 4, Observer: by})
			for _, count := range []int{0, 1, 1000} {
				commtest.Try(t, comms, ringo.Call{Kind: kind, Count: count, Type: ringo.Int32, Op: ringo.Sum}, false, 0)
				commtest.Try(t, comms, ringo.Call{Kind: kind, Count: count, Type: ringo.Int32, Op: ringo.Sum}, true, 0)
			}
			require.Equal(t, n%2 == 0 || algo != "even", by.Last(0) == algo)
		}
	}
}
