package ringo

import (
	"fmt"
	"testing"
)

// The cost of a call itself: one rank, nobody to wait for.
func BenchmarkCallAlone(b *testing.B) {
	c := local(b, 1, Config{})[0]
	call := AllReduceOf(make([]float32, 2), Sum)
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
			comms := local(b, 2, Config{})
			b.SetBytes(int64(4 * count))
			x, y := make([]float32, count), make([]float32, count)
			n := b.N
			done := make(chan error)
			go func() {
				var err error
				for range n {
					if err == nil {
						err = AllReduce(comms[1], y, Sum)
					}
				}
				done <- err
			}()
			b.ResetTimer()
			for range n {
				if err := AllReduce(comms[0], x, Sum); err != nil {
					b.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		})
	}
}
