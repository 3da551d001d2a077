package host

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/trace"
)

// allocateNothing checks that rank 0 of two allocates nothing in a call, after the first one of its kind.
func allocateNothing(t *testing.T, cfg ringo.Config, what string, do func(c *ringo.Comm) error) {
	t.Helper()
	comms := commtest.Local(t, 2, cfg)
	const runs = 50
	var errs [2]error
	try := func(rank int) {
		if err := do(comms[rank]); err != nil {
			errs[rank] = err
		}
	}
	var other sync.WaitGroup
	other.Go(func() {
		for range runs + 2 { // AllocsPerRun calls once more
			try(1)
		}
	})
	try(0)
	allocs := testing.AllocsPerRun(runs, func() { try(0) })
	other.Wait()
	require.NoError(t, errors.Join(errs[:]...), what)
	require.Zero(t, allocs, what)
}

// The data path allocates nothing after the first call of a kind, for numbers small and large, and for the reductions
// that are in order of rank.
func TestNoAllocations(t *testing.T) {
	for _, count := range []int{1, 1000, 100000} {
		calls := []*ringo.Call{ringo.AllReduceOf(make([]float32, count), ringo.Sum),
			ringo.AllReduceOf(make([]float32, count), ringo.Sum)}
		allocateNothing(t, ringo.Config{}, "all-reduce", func(c *ringo.Comm) error { return c.Do(calls[c.Rank()]) })
	}
	for _, kind := range commtest.Reductions {
		x := commtest.Trial{Kind: kind, Typ: ringo.BFloat16, Op: ringo.Avg, Count: 40_000}
		ins := x.Ins(2)
		calls := make([]ringo.Call, 2)
		for r := range calls {
			calls[r] = x.Call(r, 2, mem.Host(ins[r]), mem.Host(make([]byte, 2*x.Count)))
		}
		allocateNothing(t, commtest.Exact, kind.String(), func(c *ringo.Comm) error { return c.Do(&calls[c.Rank()]) })
	}
}

// Calls allocate nothing without an observer, with a recorder and with labels.
func TestObservedCallsAllocateNothing(t *testing.T) {
	calls := []*ringo.Call{ringo.AllReduceOf(make([]float32, 2), ringo.Sum),
		ringo.AllReduceOf(make([]float32, 2), ringo.Sum)}
	for name, o := range map[string]trace.Observer{"recorder": trace.NewRecorder(0, 0),
		"labels": trace.Labels(t.Context())} {
		allocateNothing(t, ringo.Config{Observer: o}, name, func(c *ringo.Comm) error { return c.Do(calls[c.Rank()]) })
	}
}

// The functions on slices allocate nothing after the first call of a kind.
func TestFunctionsAllocateNothing(t *testing.T) {
	counts := [][]int{{24, 40}, {40, 24}} // rank 0 sends 24 and 40 by AlltoAllv, rank 1 sends 40 and 24
	for name, f := range map[string]func(c *ringo.Comm, x, y []float32) error{
		"AllReduce":     func(c *ringo.Comm, x, y []float32) error { return ringo.AllReduce(c, x, ringo.Sum) },
		"Reduce":        func(c *ringo.Comm, x, y []float32) error { return ringo.Reduce(c, x, x, ringo.Sum, 1) },
		"Broadcast":     func(c *ringo.Comm, x, y []float32) error { return ringo.Broadcast(c, x, 0) },
		"AllGather":     func(c *ringo.Comm, x, y []float32) error { return ringo.AllGather(c, y, x) },
		"ReduceScatter": func(c *ringo.Comm, x, y []float32) error { return ringo.ReduceScatter(c, x, y, ringo.Max) },
		"AlltoAll":      func(c *ringo.Comm, x, y []float32) error { return ringo.AlltoAll(c, y[:64], x) },
		"Gather":        func(c *ringo.Comm, x, y []float32) error { return ringo.Gather(c, y, x, 0) },
		"Scatter":       func(c *ringo.Comm, x, y []float32) error { return ringo.Scatter(c, x, y, 0) },
		"AllGatherv": func(c *ringo.Comm, x, y []float32) error {
			return ringo.AllGatherv(c, y[:64], x[:counts[0][c.Rank()]], counts[0])
		},
		"AlltoAllv": func(c *ringo.Comm, x, y []float32) error {
			return ringo.AlltoAllv(c, y, counts[c.Rank()], x, counts[c.Rank()])
		},
		"Gatherv": func(c *ringo.Comm, x, y []float32) error {
			return ringo.Gatherv(c, y[:64], x[:counts[0][c.Rank()]], counts[0], 1)
		},
		"Scatterv": func(c *ringo.Comm, x, y []float32) error {
			return ringo.Scatterv(c, x[:counts[0][c.Rank()]], y[:64], counts[0], 1)
		},
		"ReduceScatterv": func(c *ringo.Comm, x, y []float32) error {
			return ringo.ReduceScatterv(c, x[:counts[0][c.Rank()]], y[:64], counts[0], ringo.PreMulSum(2))
		},
		"Scan":    func(c *ringo.Comm, x, y []float32) error { return ringo.Scan(c, x, ringo.PreMulSum(2)) },
		"Barrier": func(c *ringo.Comm, x, y []float32) error { return ringo.Barrier(c) },
	} {
		var x, y [2][]float32
		for r := range x {
			x[r], y[r] = make([]float32, 64), make([]float32, 128)
		}
		allocateNothing(t, ringo.Config{}, name, func(c *ringo.Comm) error { return f(c, x[c.Rank()], y[c.Rank()]) })
	}
}
