package ring

import "github.com/ringo-go/ringo/sched"

// ReduceScatter takes n-1 hops and sends (n-1)/n of the data a rank, the least
// possible. It is the first half of AllReduce: a chunk starts at the rank
// after its owner and travels the ring once while each rank adds its part.
type ReduceScatter struct{ N int }

// Shape is n chunks in, In[q] for rank q, and one out.
func (a ReduceScatter) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: a.N, Out: 1} }

// Len is n: the first step only sends and the last only receives.
func (a ReduceScatter) Len(sched.Rank) int { return a.N }

// At step i moves the chunk that ends at the rank i+1 places back.
func (a ReduceScatter) At(r sched.Rank, i int) sched.Step {
	n := a.N
	if n == 1 {
		return alone
	}
	prev, next := neighbours(r, n)
	c := int(r.After(-1-i, n))
	switch {
	case i == 0:
		return sched.Step{Recv: sched.Nobody, Src: sched.In.At(c), Send: next}
	case i < n-1:
		return sched.Step{Recv: prev, Src: sched.In.At(c), Send: next}
	default:
		return sched.Step{Recv: prev, Src: sched.In.At(c), Dst: sched.Out.At(0), Send: sched.Nobody}
	}
}
