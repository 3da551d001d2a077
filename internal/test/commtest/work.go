package commtest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// gpuCheck makes every call.
func gpuCheck(c *ringo.Comm) int {
	for _, count := range tier.Some(3, []int{1001, 0, 3}) {
		if err := CheckCalls(c, EveryCall(c.Size(), count, ringo.Int32, ringo.Sum)); err != nil {
			fmt.Println("error:", err)
			return 3
		}
		f := c.Footprint()
		if err := errors.Join(f.Suspend(), f.Resume()); err != nil {
			fmt.Println("error:", err)
			return 3
		}
	}
	fmt.Println("fine:", strings.Join(c.Paths(), ", "))
	return 0
}

// check makes a few collectives of all sizes and prints the transports.
func check(c *ringo.Comm) int {
	for _, count := range []int{0, 1, 10, 1000, tier.Count(300_000, 1_000_000)} {
		x := make([]int64, count)
		for i := range x {
			x[i] = int64(i * (c.Rank() + 1))
		}
		if err := ringo.AllReduce(c, x, ringo.Sum); err != nil {
			fmt.Println("error:", err)
			return 3
		}
		n := c.Size()
		for i := range x {
			if x[i] != int64(i*n*(n+1)/2) {
				fmt.Println("wrong at", count, i)
				return 4
			}
		}
		y := make([]int64, n*count)
		if err := ringo.AllGather(c, y, x); err != nil {
			fmt.Println("error:", err)
			return 3
		}
	}
	fmt.Println("fine over", c.Transport((c.Rank()+1)%c.Size()))
	return 0
}

// loop works until a peer dies.
func loop(c *ringo.Comm) int {
	fmt.Println("ready")
	x := make([]float32, 50000)
	for i := 0; ; i++ {
		if i == 10 {
			fmt.Println("under way")
		}
		if err := ringo.AllReduce(c, x, ringo.Avg); err != nil {
			fmt.Println("error:", err)
			if errors.Is(err, ringo.ErrPeer) {
				return 3
			}
			return 4
		}
	}
}
