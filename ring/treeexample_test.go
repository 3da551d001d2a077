package ring_test

import (
	"fmt"

	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

// What rank 5 of a million does: it is a leaf of one tree and an inner node of the
// other. The hops grow with the logarithm of the ranks, the data sent does not.
func Example_treeAllReduce() {
	s := tree.AllReduce{N: 1_000_000}
	for i := range s.Len(5) {
		fmt.Println(i, s.At(5, i))
	}
	for _, n := range []int{4, 64, 1024} {
		cost, err := sched.CostOf(tree.AllReduce{N: n}, 2)
		fmt.Println(n, "ranks:", cost.Hops, "hops;", cost.Sent, "halves of the data sent;", err)
	}
	// Output:
	// 0 In[1] → 6
	// 1 from 4 ⊕ In[0] → Out[0]
	// 2 from 6 ⊕ Out[0] → 3
	// 3 from 3 → Out[0] → 4
	// 4 Out[0] → 6
	// 5 from 6 → Out[1]
	// 4 ranks: 4 hops; 4 halves of the data sent; <nil>
	// 64 ranks: 12 hops; 4 halves of the data sent; <nil>
	// 1024 ranks: 20 hops; 4 halves of the data sent; <nil>
}

// The root sends to the rank that passes it on to most others first.
func Example_binomialBroadcast() {
	s := tree.BinomialBroadcast{N: 8, Root: 0}
	for i := range s.Len(0) {
		fmt.Println(s.At(0, i))
	}
	// Output:
	// In[0] → Out[0] → 4
	// Out[0] → 2
	// Out[0] → 1
}
