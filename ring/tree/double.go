package tree

import (
	"math/bits"

	"github.com/ringo-go/ringo/sched"
)

// A twin is one of the two trees over the ranks 0 … p-1; it carries the chunk of
// its number. The second is the first mirrored if p is even, and shifted by one
// if p is odd, so that inner nodes of one are leaves of the other; when p is
// odd one rank is a leaf of both.
type twin struct{ p, chunk int }

// node is where rank r stands in the tree, 1 … p.
func (t twin) node(r int) int {
	switch {
	case t.chunk == 0:
		return r + 1
	case t.p%2 == 0:
		return t.p - r
	default:
		return int(sched.Rank(r).After(-1, t.p)) + 1
	}
}

// rank undoes node.
func (t twin) rank(m int) sched.Rank {
	switch {
	case t.chunk == 0:
		return sched.Rank(m - 1)
	case t.p%2 == 0:
		return sched.Rank(t.p - m)
	default:
		return sched.Rank(m % t.p)
	}
}

func (t twin) root() sched.Rank { return t.rank(top(t.p)) }

func (t twin) at(r int) node {
	parent, left, right := inorder(t.node(r), t.p)
	p := node{chunk: t.chunk, parent: sched.Nobody}
	if parent > 0 {
		p.parent = t.rank(parent)
	}
	for _, kid := range []int{left, right} {
		if kid > 0 {
			p.adopt(t.rank(kid))
		}
	}
	return p
}

// top is the root of the in-order tree: the greatest power of two up to p.
func top(p int) int { return 1 << (bits.Len(uint(p)) - 1) }

// inorder is the binary tree over 1 … p whose nodes count up from left to right.
// The zeros at the end of a number are its height: odd ones are leaves, even
// ones are not. It returns the neighbours of m, 0 for none.
func inorder(m, p int) (parent, left, right int) {
	low := m & -m
	if low > 1 {
		left = m - low/2
	}
	for h := low / 2; h > 0 && right == 0; h /= 2 {
		if m+h <= p { // the tree is cut off at p: else take the next lower node
			right = m + h
		}
	}
	if m == top(p) {
		return 0, left, right
	}
	for {
		m = m&^low | 2*low
		if m <= p { // else take the next higher one
			return m, left, right
		}
		low *= 2
	}
}

// nodes are those of rank r of n in both trees, the one where it is a leaf
// first.
func nodes(r sched.Rank, n int) (leaf, inner node) {
	first, second := twin{n, 0}.at(int(r)), twin{n, 1}.at(int(r))
	if first.kids == 0 {
		return first, second
	}
	return second, first
}

// rooted are the nodes of rank r of n when both trees hang from one root: the
// other ranks make the trees, numbered from the root on, and the root is the
// parent of their two roots.
func rooted(r, root sched.Rank, n int) (leaf, inner node) {
	p := n - 1
	rank := func(v sched.Rank) sched.Rank { return root.After(int(v)+1, n) }
	if r == root {
		leaf, inner = node{chunk: 0, parent: sched.Nobody}, node{chunk: 1, parent: sched.Nobody}
		leaf.adopt(rank(twin{p, 0}.root()))
		inner.adopt(rank(twin{p, 1}.root()))
		return leaf, inner
	}
	leaf, inner = nodes(r.After(-1-int(root), n), p)
	for _, t := range []*node{&leaf, &inner} {
		if t.parent == sched.Nobody {
			t.parent = root
		} else {
			t.parent = rank(t.parent)
		}
		for k := range t.kids {
			t.kid[k] = rank(t.kid[k])
		}
	}
	return leaf, inner
}
