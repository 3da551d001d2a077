package ring_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/schedtest"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

// flat are the schedules without a root.
var flat = map[string]struct {
	goal  sched.Goal
	build func(n int) sched.Schedule
}{
	"OneShot":           {sched.AllReduce, func(n int) sched.Schedule { return direct.OneShot{N: n} }},
	"TwoShot":           {sched.AllReduce, func(n int) sched.Schedule { return direct.TwoShot{N: n} }},
	"RecursiveDoubling": {sched.AllReduce, func(n int) sched.Schedule { return direct.RecursiveDoubling{N: n} }},
	"HalvingDoubling":   {sched.AllReduce, func(n int) sched.Schedule { return direct.HalvingDoubling{N: n} }},
	"AllGather":         {sched.AllGather, func(n int) sched.Schedule { return direct.AllGather{N: n} }},
	"LogAllGather":      {sched.AllGather, func(n int) sched.Schedule { return direct.LogAllGather{N: n} }},
	"ReduceScatter":     {sched.ReduceScatter, func(n int) sched.Schedule { return direct.ReduceScatter{N: n} }},
	"LogReduceScatter":  {sched.ReduceScatter, func(n int) sched.Schedule { return direct.LogReduceScatter{N: n} }},
	"AlltoAll":          {sched.AlltoAll, func(n int) sched.Schedule { return direct.AlltoAll{N: n} }},
}

func TestDirectProofs(t *testing.T) {
	for name, c := range flat {
		t.Run(name, func(t *testing.T) { schedtest.Prove(t, c.goal, c.build) })
	}
	t.Run("Gather", func(t *testing.T) {
		schedtest.ProveRooted(t, sched.Gather,
			func(n int, root sched.Rank) sched.Schedule { return direct.Gather{N: n, Root: root} })
	})
	t.Run("Scatter", func(t *testing.T) {
		schedtest.ProveRooted(t, sched.Scatter,
			func(n int, root sched.Rank) sched.Schedule { return direct.Scatter{N: n, Root: root} })
	})
}

func TestDirectGoldens(t *testing.T) {
	schedtest.Golden(t, "direct/oneshot", direct.OneShot{N: 4})
	schedtest.Golden(t, "direct/twoshot", direct.TwoShot{N: 4})
	schedtest.Golden(t, "direct/recursivedoubling", direct.RecursiveDoubling{N: 6})
	schedtest.Golden(t, "direct/halvingdoubling", direct.HalvingDoubling{N: 5})
	schedtest.Golden(t, "direct/logreducescatter", direct.LogReduceScatter{N: 5})
	schedtest.Golden(t, "direct/logallgather", direct.LogAllGather{N: 5})
	schedtest.Golden(t, "direct/allgather", direct.AllGather{N: 4})
	schedtest.Golden(t, "direct/reducescatter", direct.ReduceScatter{N: 4})
	schedtest.Golden(t, "direct/alltoall", direct.AlltoAll{N: 4})
	schedtest.Golden(t, "direct/gather", direct.Gather{N: 4, Root: 1})
	schedtest.Golden(t, "direct/scatter", direct.Scatter{N: 4, Root: 1})
}

// Two ranks must do the least there is: the shared-memory path is made for it.
func TestDirectTwoRanks(t *testing.T) {
	const nobody = sched.Nobody
	in := func(c int32) sched.Ref { return sched.Ref{Buf: sched.In, Chunk: c} }
	out := func(c int32) sched.Ref { return sched.Ref{Buf: sched.Out, Chunk: c} }
	oneShot := func(other sched.Rank) []sched.Step {
		return []sched.Step{
			{Recv: nobody, Src: in(0), Send: other},
			{Recv: other, Src: in(0), Dst: out(0), Send: nobody},
		}
	}
	twoShot := func(other sched.Rank) []sched.Step {
		own := int32(1 - other)
		return []sched.Step{
			{Recv: nobody, Src: in(int32(other)), Send: other},
			{Recv: other, Src: in(own), Dst: out(own), Send: other},
			{Recv: other, Dst: out(int32(other)), Send: nobody},
		}
	}
	for name, c := range map[string]struct {
		s    sched.Schedule
		want func(other sched.Rank) []sched.Step
	}{
		"OneShot":           {direct.OneShot{N: 2}, oneShot},
		"RecursiveDoubling": {direct.RecursiveDoubling{N: 2}, oneShot},
		"TwoShot":           {direct.TwoShot{N: 2}, twoShot},
		"HalvingDoubling":   {direct.HalvingDoubling{N: 2}, twoShot},
	} {
		t.Run(name, func(t *testing.T) {
			for r := range sched.Rank(2) {
				var got []sched.Step
				for i := range c.s.Len(r) {
					got = append(got, c.s.At(r, i))
				}
				require.Equal(t, c.want(1-r), got, "rank %d", r)
			}
		})
	}
}
