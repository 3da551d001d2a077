package host

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
)

// Queues between goroutine ranks take memory for what goes through them, and not for the longest
// message that might.
func TestManyGoroutineRanksTakeLittleMemory(t *testing.T) {
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	comms, err := ringo.OpenLocal(64, ringo.Config{})
	require.NoError(t, err)
	for _, n := range []int{2, 1 << 10} {
		var wg sync.WaitGroup
		for _, c := range comms {
			wg.Go(func() {
				x := make([]float32, n)
				if err := ringo.AllReduce(c, x, ringo.Sum); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	require.Less(t, heap()-before, 50<<20, "the most that may wait in 384 connections is 384 MB")
	for _, c := range comms {
		require.NoError(t, c.Close())
	}
}
