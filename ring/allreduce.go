package ring

import "github.com/ringo-go/ringo/sched"

// AllReduce takes 2(n-1) hops and sends 2(n-1)/n of the data a rank, the least
// possible (the lower bound of Patarasuk and Yuan).
//
// Chunk c starts at rank c+1 and travels the ring once while each rank adds its
// part; the last to add is rank c, and on a second way round all ranks keep it.
// All ranks hold the same bits because each sum is made by one rank.
type AllReduce struct{ N int }

// Shape is n chunks in and out, no scratch.
func (a AllReduce) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: a.N, Out: a.N} }

// Len is 2n-1: the first step only sends and the last only receives.
func (a AllReduce) Len(sched.Rank) int { return 2*a.N - 1 }

// At is the whole algorithm: one formula, five cases.
func (a AllReduce) At(r sched.Rank, i int) sched.Step {
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
	case i == n-1:
		return sched.Step{Recv: prev, Src: sched.In.At(c), Dst: sched.Out.At(c), Send: next}
	case i < 2*n-2:
		return sched.Step{Recv: prev, Dst: sched.Out.At(c), Send: next}
	default:
		return sched.Step{Recv: prev, Dst: sched.Out.At(c), Send: sched.Nobody}
	}
}
