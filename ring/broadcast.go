package ring

import "github.com/ringo-go/ringo/sched"

// Broadcast takes n-1 hops and sends the data once a rank, the least possible.
// The ring is cut before the root into a chain. A step forwards slice by slice,
// so large data streams through all ranks at once.
type Broadcast struct {
	N    int
	Root sched.Rank
}

// Shape is one chunk in, read at the root only, and one out.
func (b Broadcast) Shape() sched.Shape { return sched.Shape{Ranks: b.N, In: 1, Out: 1} }

// Len is 1.
func (b Broadcast) Len(sched.Rank) int { return 1 }

// At depends on the position in the chain: head, middle or tail.
func (b Broadcast) At(r sched.Rank, _ int) sched.Step {
	if b.N == 1 {
		return alone
	}
	prev, next := neighbours(r, b.N)
	switch {
	case r == b.Root:
		return sched.Step{Recv: sched.Nobody, Src: sched.In.At(0), Dst: sched.Out.At(0), Send: next}
	case next != b.Root:
		return sched.Step{Recv: prev, Dst: sched.Out.At(0), Send: next}
	default:
		return sched.Step{Recv: prev, Dst: sched.Out.At(0), Send: sched.Nobody}
	}
}
