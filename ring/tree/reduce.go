package tree

import "github.com/ringo-go/ringo/sched"

// Reduce takes ⌊log₂(n-1)⌋+1 hops and sends the data once a rank: it is
// Broadcast backwards.
type Reduce struct {
	N    int
	Root sched.Rank
}

// Shape is two chunks in, two out, written at the root only, and two of scratch
// for the sum between two children.
func (d Reduce) Shape() sched.Shape { return sched.Shape{Ranks: d.N, In: 2, Out: 2, Tmp: 2} }

// Len is 1 for the tree where the rank is a leaf and 1 or 2 for the other.
func (d Reduce) Len(r sched.Rank) int { return Broadcast(d).Len(r) }

// At goes up as a leaf first, which waits for nobody.
func (d Reduce) At(r sched.Rank, i int) sched.Step {
	if d.N == 1 {
		return alone(i)
	}
	leaf, inner := rooted(r, d.Root, d.N)
	if i < leaf.steps() {
		return leaf.up(i, sched.Tmp.At(leaf.chunk))
	}
	return inner.up(i-leaf.steps(), sched.Tmp.At(inner.chunk))
}
