package handbook_test

import (
	"context"
	"fmt"
	"math"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

func Example_parts() {
	const bytes, alpha, rate = 1 << 20, 5e-6, 4e9
	m := sim.Model{Intra: sim.Link{Latency: alpha, Overhead: 1e-6, Bandwidth: rate, Busy: true}, SlotBytes: bytes,
		Slots: 64}
	chain := ring.Broadcast{N: 8}
	for _, parts := range []int{1, 4, 16, 64, 256} {
		s := sched.Split(chain, parts)
		r, err := sim.Run(context.Background(), s, m, bytes, sim.Options{})
		fmt.Printf("%3d parts of %4d KiB: %5.0f µs %v\n", parts, bytes>>10/parts, r.Time*1e6, err)
	}
	// What a part costs each rank beside its bytes is the overhead, 1 µs at each end.
	fmt.Printf("best by the formula: %.0f parts\n", math.Sqrt(6*bytes/rate/2e-6))
	// Output:
	//   1 parts of 1024 KiB:  1884 µs <nil>
	//   4 parts of  256 KiB:   710 µs <nil>
	//  16 parts of   64 KiB:   439 µs <nil>
	//  64 parts of   16 KiB:   462 µs <nil>
	// 256 parts of    4 KiB:   827 µs <nil>
	// best by the formula: 28 parts
}
