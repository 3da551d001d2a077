package host

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
)

// The cost of a call itself: one rank, nobody to wait for.
func BenchmarkCallAlone(b *testing.B) {
	c := commtest.Local(b, 1, ringo.Config{})[0]
	call := ringo.AllReduceOf(make([]float32, 2), ringo.Sum)
	for b.Loop() {
		if err := c.Do(call); err != nil {
			b.Fatal(err)
		}
	}
}

// All-reduce among goroutines.
func BenchmarkAllReduceLocal(b *testing.B) {
	for _, count := range []int{2, 1 << 14, 1 << 20} {
		b.Run(fmt.Sprint(4*count, "B"), func(b *testing.B) {
			comms := commtest.Local(b, 2, ringo.Config{})
			b.SetBytes(int64(4 * count))
			x, y := make([]float32, count), make([]float32, count)
			n := b.N
			done := make(chan error)
			go func() {
				var err error
				for range n {
					if err == nil {
						err = ringo.AllReduce(comms[1], y, ringo.Sum)
					}
				}
				done <- err
			}()
			b.ResetTimer()
			for range n {
				if err := ringo.AllReduce(comms[0], x, ringo.Sum); err != nil {
					b.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}

// Four ranks of one process meet in 2 ms: they open no listener that nobody needs.
func BenchmarkOpenLocal(b *testing.B) {
	for b.Loop() {
		comms, err := ringo.OpenLocal(4, ringo.Config{})
		require.NoError(b, err)
		var wg sync.WaitGroup
		for _, c := range comms {
			wg.Go(func() { c.Close() })
		}
		wg.Wait()
	}
}
