package ringo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The functions on slices allocate nothing, not even their call, after the first of a kind.
func TestCallsAllocateNothing(t *testing.T) {
	c, err := Open(t.Context(), Config{Size: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	x, y, n := make([]float32, 4), make([]float32, 4), []int{4}
	most := 0.0
	if testing.CoverMode() != "" { // then the compiler does not inline the functions XOf
		most = 1
	}
	for name, call := range map[string]func() error{
		"AllReduce":      func() error { return AllReduce(c, x, Sum) },
		"AllReduceTo":    func() error { return AllReduceTo(c, y, x, Sum) },
		"Reduce":         func() error { return Reduce(c, y, x, Sum, 0) },
		"Broadcast":      func() error { return Broadcast(c, x, 0) },
		"BroadcastTo":    func() error { return BroadcastTo(c, y, x, 0) },
		"AllGather":      func() error { return AllGather(c, y, x) },
		"ReduceScatter":  func() error { return ReduceScatter(c, y, x, Sum) },
		"AlltoAll":       func() error { return AlltoAll(c, y, x) },
		"Gather":         func() error { return Gather(c, y, x, 0) },
		"Scatter":        func() error { return Scatter(c, y, x, 0) },
		"AllGatherv":     func() error { return AllGatherv(c, y, x, n) },
		"AlltoAllv":      func() error { return AlltoAllv(c, y, n, x, n) },
		"Gatherv":        func() error { return Gatherv(c, y, x, n, 0) },
		"Scatterv":       func() error { return Scatterv(c, y, x, n, 0) },
		"ReduceScatterv": func() error { return ReduceScatterv(c, y, x, n, Sum) },
		"Scan":           func() error { return Scan(c, x, Sum) },
		"Barrier":        func() error { return Barrier(c) },
	} {
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { require.NoError(t, call()) }), most, name)
	}
}
