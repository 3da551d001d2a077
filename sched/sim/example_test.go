package sim_test

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched/sim"
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
		fmt.Printf("%d bytes: latency %.1f µs, wire %.1f µs, compute %.1f µs\n", bytes, p.Latency*1e6, p.Wire*1e6,
			p.Compute*1e6)
	}
	// Output:
	// 8 bytes: latency 10.4 µs, wire 0.0 µs, compute 0.0 µs
	// 67108864 bytes: latency 1.5 µs, wire 324.4 µs, compute 1.0 µs
}

// A machine of one's own: NVLink inside nodes of four, and two cards for each node.
func ExampleParse() {
	m, err := sim.Parse([]byte(`{
		"like": "nvlink", "name": "two cards a node", "node_ranks": 4,
		"between": {"what": "two cards", "bandwidth": "400G", "shared": "800G", "latency": "3us"}
	}`))
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(m)
	t, err := sim.Estimate(ring.AllReduce{N: 32}, m, 64<<20)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("a ring of 32 takes %.1f ms\n", t*1e3)
	// Output:
	// two cards a node: nodes of 4; inside NVLink between H200s, 362 GB/s a rank, 740ns; between them two cards, 50 GB/s a rank, 100 GB/s a node, 3µs
	// a ring of 32 takes 2.6 ms
}
