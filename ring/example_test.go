package ring_test

import (
	"fmt"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
)

// What rank 1 of 4 does in an all-reduce: it adds its part to three chunks that
// come by, and keeps the sums on the second way round.
func ExampleAllReduce() {
	s := ring.AllReduce{N: 4}
	for i := range s.Len(1) {
		fmt.Println(i, s.At(1, i))
	}
	cost, err := sched.CostOf(s, 2)
	fmt.Println(cost.Hops, "hops;", cost.Sent, "quarters of the data sent;", err)
	// Output:
	// 0 In[0] → 2
	// 1 from 0 ⊕ In[3] → 2
	// 2 from 0 ⊕ In[2] → 2
	// 3 from 0 ⊕ In[1] → Out[1] → 2
	// 4 from 0 → Out[0] → 2
	// 5 from 0 → Out[3] → 2
	// 6 from 0 → Out[2]
	// 6 hops; 6 quarters of the data sent; <nil>
}
