package ring_test

import (
	"testing"

	"github.com/ringo-go/ringo/internal/test/schedtest"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

func TestTreeProofs(t *testing.T) {
	t.Run("AllReduce", func(t *testing.T) {
		schedtest.Prove(t, sched.AllReduce, func(n int) sched.Schedule { return tree.AllReduce{N: n} })
	})
	for name, build := range map[string]func(n int, root sched.Rank) sched.Schedule{
		"Broadcast":         func(n int, root sched.Rank) sched.Schedule { return tree.Broadcast{N: n, Root: root} },
		"BinomialBroadcast": func(n int, root sched.Rank) sched.Schedule { return tree.BinomialBroadcast{N: n, Root: root} },
	} {
		t.Run(name, func(t *testing.T) { schedtest.ProveRooted(t, sched.Broadcast, build) })
	}
	for name, build := range map[string]func(n int, root sched.Rank) sched.Schedule{
		"Reduce":         func(n int, root sched.Rank) sched.Schedule { return tree.Reduce{N: n, Root: root} },
		"BinomialReduce": func(n int, root sched.Rank) sched.Schedule { return tree.BinomialReduce{N: n, Root: root} },
	} {
		t.Run(name, func(t *testing.T) { schedtest.ProveRooted(t, sched.Reduce, build) })
	}
}

func TestTreeGoldens(t *testing.T) {
	schedtest.Golden(t, "tree/allreduce", tree.AllReduce{N: 6})
	schedtest.Golden(t, "tree/broadcast", tree.Broadcast{N: 6, Root: 1})
	schedtest.Golden(t, "tree/reduce", tree.Reduce{N: 6, Root: 1})
	schedtest.Golden(t, "tree/binomialbroadcast", tree.BinomialBroadcast{N: 6, Root: 1})
	schedtest.Golden(t, "tree/binomialreduce", tree.BinomialReduce{N: 6, Root: 1})
}
