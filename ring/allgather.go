package ring

import "github.com/ringo-go/ringo/sched"

// AllGather takes n-1 hops and sends (n-1)/n of the result a rank, the least
// possible: every rank passes on what it has just received.
type AllGather struct{ N int }

// Shape is one chunk in and n out, Out[q] from rank q.
func (a AllGather) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: 1, Out: a.N} }

// Len is n: the first step only sends and the last only receives.
func (a AllGather) Len(sched.Rank) int { return a.N }

// At step i moves the chunk of the rank i places back.
func (a AllGather) At(r sched.Rank, i int) sched.Step {
	n := a.N
	if n == 1 {
		return alone
	}
	prev, next := neighbours(r, n)
	c := int(r.After(-i, n))
	switch {
	case i == 0:
		return sched.Step{Recv: sched.Nobody, Src: sched.In.At(0), Dst: sched.Out.At(c), Send: next}
	case i < n-1:
		return sched.Step{Recv: prev, Dst: sched.Out.At(c), Send: next}
	default:
		return sched.Step{Recv: prev, Dst: sched.Out.At(c), Send: sched.Nobody}
	}
}
