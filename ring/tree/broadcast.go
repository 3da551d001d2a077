package tree

import "github.com/ringo-go/ringo/sched"

// Broadcast takes ⌊log₂(n-1)⌋+1 hops and sends the data at most once a
// rank: the root gives each half to the root of one of the two trees.
type Broadcast struct {
	N    int
	Root sched.Rank
}

// Shape is two chunks in, read at the root only, and two out.
func (b Broadcast) Shape() sched.Shape { return sched.Shape{Ranks: b.N, In: 2, Out: 2} }

// Len is 1 for the tree where the rank is a leaf and 1 or 2 for the other.
func (b Broadcast) Len(r sched.Rank) int {
	if b.N == 1 {
		return 2
	}
	_, inner := rooted(r, b.Root, b.N)
	return inner.steps() + 1
}

// At goes down as an inner node first: others wait for it.
func (b Broadcast) At(r sched.Rank, i int) sched.Step {
	if b.N == 1 {
		return alone(i)
	}
	leaf, inner := rooted(r, b.Root, b.N)
	if i < inner.steps() {
		return inner.down(i)
	}
	return leaf.down(i - inner.steps())
}
