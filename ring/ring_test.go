package ring_test

import (
	"testing"

	"github.com/ringo-go/ringo/internal/test/schedtest"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
)

func TestProofs(t *testing.T) {
	t.Run("AllReduce", func(t *testing.T) {
		schedtest.Prove(t, sched.AllReduce, func(n int) sched.Schedule { return ring.AllReduce{N: n} })
	})
	t.Run("AllGather", func(t *testing.T) {
		schedtest.Prove(t, sched.AllGather, func(n int) sched.Schedule { return ring.AllGather{N: n} })
	})
	t.Run("ReduceScatter", func(t *testing.T) {
		schedtest.Prove(t, sched.ReduceScatter, func(n int) sched.Schedule { return ring.ReduceScatter{N: n} })
	})
	t.Run("Broadcast", func(t *testing.T) {
		schedtest.ProveRooted(t, sched.Broadcast,
			func(n int, root sched.Rank) sched.Schedule { return ring.Broadcast{N: n, Root: root} })
	})
	t.Run("Reduce", func(t *testing.T) {
		schedtest.ProveRooted(t, sched.Reduce,
			func(n int, root sched.Rank) sched.Schedule { return ring.Reduce{N: n, Root: root} })
	})
}

func TestGoldens(t *testing.T) {
	schedtest.Golden(t, "allreduce", ring.AllReduce{N: 4})
	schedtest.Golden(t, "allgather", ring.AllGather{N: 4})
	schedtest.Golden(t, "reducescatter", ring.ReduceScatter{N: 4})
	schedtest.Golden(t, "broadcast", ring.Broadcast{N: 4, Root: 1})
	schedtest.Golden(t, "reduce", ring.Reduce{N: 4, Root: 1})
}
