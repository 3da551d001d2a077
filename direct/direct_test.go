package direct_test

import (
	"testing"

	"github.com/ringo-go/ringo/direct"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/schedtest"
)

func TestProofs(t *testing.T) {
	for name, c := range map[string]struct {
		goal  sched.Goal
		build func(n int) sched.Schedule
	}{
		"OneShot":   {sched.AllReduce, func(n int) sched.Schedule { return direct.OneShot{N: n} }},
		"AllGather": {sched.AllGather, func(n int) sched.Schedule { return direct.AllGather{N: n} }},
		"AllToAll":  {sched.AlltoAll, func(n int) sched.Schedule { return direct.AllToAll{N: n} }},
	} {
		t.Run(name, func(t *testing.T) { schedtest.Prove(t, c.goal, c.build) })
	}
}
