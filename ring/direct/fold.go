package direct

import (
	"math/bits"

	"github.com/ringo-go/ringo/sched"
)

// A core is 2^k of n ranks, as many as there can be, for algorithms that need a
// power of two. The other n-2^k ranks are folded: each is the even one of a pair
// among the first ranks, gives its part to the odd one and waits for the result.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of collective
// communication operations in MPICH", IJHPCA 19 (2005), section 4.5.
type core struct {
	n, size int
	rounds  int // log₂ size
}

func coreOf(n int) core {
	rounds := bits.Len(uint(n)) - 1
	return core{n: n, size: 1 << rounds, rounds: rounds}
}

// member gives the number of r in the core, or false if it is folded away, and
// its other half, or Nobody.
func (c core) member(r sched.Rank) (v int, other sched.Rank, ok bool) {
	switch folded := 2 * (c.n - c.size); {
	case int(r) >= folded:
		return int(r) - folded/2, sched.Nobody, true
	case r%2 == 1:
		return int(r) / 2, r - 1, true
	default:
		return 0, r + 1, false
	}
}

// rank is member v of the core.
func (c core) rank(v int) sched.Rank {
	if extra := c.n - c.size; v >= extra {
		return sched.Rank(v + extra)
	}
	return sched.Rank(2*v + 1)
}
