package ring_test

import (
	"fmt"

	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

// Four ways to all-reduce on 8 ranks: few hops, or few bytes.
func Example_direct() {
	for _, s := range []sched.Schedule{
		direct.OneShot{N: 8}, direct.TwoShot{N: 8}, direct.RecursiveDoubling{N: 8}, direct.HalvingDoubling{N: 8},
	} {
		cost, err := sched.CostOf(s, 8)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%T: %d hops, %.2f times the data sent\n", s, cost.Hops, float64(cost.Sent)/float64(s.Shape().In))
	}
	// Output:
	// direct.OneShot: 1 hops, 7.00 times the data sent
	// direct.TwoShot: 2 hops, 1.75 times the data sent
	// direct.RecursiveDoubling: 3 hops, 3.00 times the data sent
	// direct.HalvingDoubling: 8 hops, 1.75 times the data sent
}

// Both ranks of a pair compute the same sum, so no rank has to send it.
func Example_recursiveDoubling() {
	s := direct.RecursiveDoubling{N: 4}
	for i := range s.Len(1) {
		fmt.Println(s.At(1, i))
	}
	// Output:
	// In[0] → 0
	// from 0 ⊕ In[0] → Out[0] → 3
	// from 3 ⊕ Out[0] → Out[0]
}
