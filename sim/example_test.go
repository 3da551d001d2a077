package sim_test

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sim"
	"github.com/ringo-go/ringo/tree"
)

// Which is faster on 64 ranks, the ring or the tree? It depends on the size.
func Example() {
	const n = 64
	for _, bytes := range []int64{8, 16 << 20} {
		r, err := sim.Run(context.Background(), ring.AllReduce{N: n}, sim.InfiniBandNDR, bytes, sim.Options{})
		if err != nil {
			fmt.Println(err)
		}
		t, err := sim.Run(context.Background(), tree.AllReduce{N: n}, sim.InfiniBandNDR, bytes, sim.Options{})
		if err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%d bytes: the ring takes %.0f µs, the tree is faster: %v\n", bytes, r.Time*1e6, t.Time < r.Time)
	}
	// Output:
	// 8 bytes: the ring takes 49 µs, the tree is faster: true
	// 16777216 bytes: the ring takes 5802 µs, the tree is faster: false
}

// What is the time made of?
func ExampleDecompose() {
	s := ring.AllReduce{N: 8}
	for _, bytes := range []int64{8, 64 << 20} {
		p, err := sim.Decompose(context.Background(), s, sim.NVLink, bytes, sim.Options{})
		if err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%d bytes: latency %.1f µs, wire %.1f µs, compute %.1f µs\n", bytes, p.Latency*1e6, p.Wire*1e6, p.Compute*1e6)
	}
	// Output:
	// 8 bytes: latency 10.4 µs, wire 0.0 µs, compute 0.0 µs
	// 67108864 bytes: latency 1.5 µs, wire 324.4 µs, compute 1.0 µs
}
