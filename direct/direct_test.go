package direct_test

import (
	"testing"

	"github.com/ringo-go/ringo/direct"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/schedtest"
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
	"LogAllReduce":      {sched.AllReduce, func(n int) sched.Schedule { return direct.LogAllReduce{N: n} }},
	"AllGather":         {sched.AllGather, func(n int) sched.Schedule { return direct.AllGather{N: n} }},
	"LogAllGather":      {sched.AllGather, func(n int) sched.Schedule { return direct.LogAllGather{N: n} }},
	"ReduceScatter":     {sched.ReduceScatter, func(n int) sched.Schedule { return direct.ReduceScatter{N: n} }},
	"LogReduceScatter":  {sched.ReduceScatter, func(n int) sched.Schedule { return direct.LogReduceScatter{N: n} }},
	"AllToAll":          {sched.AlltoAll, func(n int) sched.Schedule { return direct.AllToAll{N: n} }},
}

func TestProofs(t *testing.T) {
	for name, c := range flat {
		t.Run(name, func(t *testing.T) { schedtest.Prove(t, c.goal, c.build) })
	}
	t.Run("Gather", func(t *testing.T) {
		schedtest.ProveRooted(t, sched.Gather, func(n int, root sched.Rank) sched.Schedule { return direct.Gather{N: n, Root: root} })
	})
	t.Run("Scatter", func(t *testing.T) {
		schedtest.ProveRooted(t, sched.Scatter, func(n int, root sched.Rank) sched.Schedule { return direct.Scatter{N: n, Root: root} })
	})
}
