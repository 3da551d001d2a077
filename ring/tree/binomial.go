package tree

import "github.com/ringo-go/ringo/sched"

// BinomialBroadcast takes ⌊log₂ n⌋ hops, or ⌈log₂ n⌉ rounds where a rank sends
// one message at a time, the fewest there can be; the root sends the data
// ⌈log₂ n⌉ times. In each round every rank that has the data sends it to one
// that has not. It is the choice for small messages.
type BinomialBroadcast struct {
	N    int
	Root sched.Rank
}

// Shape is one chunk in, read at the root only, and one out.
func (b BinomialBroadcast) Shape() sched.Shape { return sched.Shape{Ranks: b.N, In: 1, Out: 1} }

// Len is the number of children, at least 1.
func (b BinomialBroadcast) Len(r sched.Rank) int {
	p := binomial(r, b.Root, b.N)
	return p.steps()
}

// At receives and sends to the children, the one with most descendants first.
func (b BinomialBroadcast) At(r sched.Rank, i int) sched.Step {
	p := binomial(r, b.Root, b.N)
	return p.down(i)
}

// BinomialReduce takes ⌊log₂ n⌋ hops and sends the data once a rank: it is
// BinomialBroadcast backwards.
type BinomialReduce struct {
	N    int
	Root sched.Rank
}

// Shape is one chunk in, one out, written at the root only, and one of scratch
// for the sum between children.
func (d BinomialReduce) Shape() sched.Shape { return sched.Shape{Ranks: d.N, In: 1, Out: 1, Tmp: 1} }

// Len is the number of children, at least 1.
func (d BinomialReduce) Len(r sched.Rank) int { return BinomialBroadcast(d).Len(r) }

// At adds what comes from the children, the one with fewest descendants first,
// and sends.
func (d BinomialReduce) At(r sched.Rank, i int) sched.Step {
	p := binomial(r, d.Root, d.N)
	for a, b := 0, p.kids-1; a < b; a, b = a+1, b-1 {
		p.kid[a], p.kid[b] = p.kid[b], p.kid[a]
	}
	return p.up(i, sched.Tmp.At(0))
}

// binomial is the node of rank r of n. Counted from the root, the parent of v
// is v without its lowest one bit, and its children have one more bit below it;
// the highest has most descendants.
func binomial(r, root sched.Rank, n int) node {
	v := int(r.After(-int(root), n)) // counted from the root
	rank := func(v int) sched.Rank { return root.After(v, n) }
	low := v & -v
	p := node{parent: rank(v - low)}
	if v == 0 {
		p.parent = sched.Nobody
		low = 2 * top(n)
	}
	for bit := low / 2; bit > 0; bit /= 2 {
		if v+bit < n {
			p.adopt(rank(v + bit))
		}
	}
	return p
}
