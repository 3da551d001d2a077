package ring

import "github.com/ringo-go/ringo/sched"

// Reduce takes n-1 hops and sends the data once a rank, the least possible. The
// ring is cut after the root into a chain; each rank adds its part to what
// streams by.
type Reduce struct {
	N    int
	Root sched.Rank
}

// Shape is one chunk in and one out, written at the root only.
func (d Reduce) Shape() sched.Shape { return sched.Shape{Ranks: d.N, In: 1, Out: 1} }

// Len is 1.
func (d Reduce) Len(sched.Rank) int { return 1 }

// At depends on the position in the chain: head, middle or tail.
func (d Reduce) At(r sched.Rank, _ int) sched.Step {
	if d.N == 1 {
		return alone
	}
	prev, next := neighbours(r, d.N)
	switch {
	case r == d.Root:
		return sched.Step{Recv: prev, Src: sched.In.At(0), Dst: sched.Out.At(0), Send: sched.Nobody}
	case prev != d.Root:
		return sched.Step{Recv: prev, Src: sched.In.At(0), Send: next}
	default:
		return sched.Step{Recv: sched.Nobody, Src: sched.In.At(0), Send: next}
	}
}
