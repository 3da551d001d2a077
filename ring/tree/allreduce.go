package tree

import "github.com/ringo-go/ringo/sched"

// AllReduce takes 2⌊log₂ n⌋ hops and sends at most twice the data a
// rank: each half goes up one of the two trees as a sum and down again as the
// result (a reduction and then a broadcast).
type AllReduce struct{ N int }

// Shape is two chunks in and out, one a tree, and no scratch: sums grow in Out.
func (a AllReduce) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: 2, Out: 2} }

// Len is 2 for the tree where the rank is a leaf and up to 4 for the other.
func (a AllReduce) Len(r sched.Rank) int {
	if a.N == 1 {
		return 2
	}
	_, inner := nodes(r, a.N)
	if inner.parent == sched.Nobody {
		return 2 + 2*inner.steps() - 1
	}
	return 2 + 2*inner.steps()
}

// At sends up as a leaf, which waits for nobody; then up and down as an inner
// node, on which others wait; and down as a leaf at the end.
func (a AllReduce) At(r sched.Rank, i int) sched.Step {
	if a.N == 1 {
		return alone(i)
	}
	leaf, inner := nodes(r, a.N)
	ups := inner.steps()
	switch {
	case i == 0:
		return leaf.up(0, sched.Ref{})
	case i == a.Len(r)-1:
		return leaf.down(0)
	case inner.parent != sched.Nobody && i <= ups:
		return inner.up(i-1, sched.Out.At(inner.chunk))
	case inner.parent != sched.Nobody:
		return inner.down(i - 1 - ups)
	case i < ups:
		return inner.up(i-1, sched.Out.At(inner.chunk))
	case i == ups: // at the root the last sum is the result and starts down
		s := inner.up(i-1, sched.Out.At(inner.chunk))
		s.Send = inner.kid[0]
		return s
	default:
		return inner.down(i - ups)
	}
}
