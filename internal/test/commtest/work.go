package commtest

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/tier"
)

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
