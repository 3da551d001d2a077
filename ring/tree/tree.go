// Package tree holds the tree algorithms, as schedules: collectives that spread along trees. Their hops grow with
// log n: they are for small and middle messages of many ranks.
//
// A binomial tree has the fewest hops, but its root sends the data log n times.
// In a binary tree no rank sends it more than twice, but half of the ranks are
// leaves and send nothing. The double binary tree puts them to use: two trees,
// each for half of the data, and every rank is an inner node of at most one.
//
// The trap: the chunks are halves of the data, one a tree, so large messages are a
// pipeline only as far as an engine cuts them in pieces.
//
// Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth
// broadcast, reduction and scan", Parallel Computing 35 (2009).
package tree

import "github.com/ringo-go/ringo/sched"

// A node is where a rank stands in one tree, and which chunk the tree carries.
type node struct {
	chunk  int
	parent sched.Rank // Nobody at the root
	kids   int
	kid    [31]sched.Rank
}

func (p *node) adopt(r sched.Rank) {
	p.kid[p.kids] = r
	p.kids++
}

// steps is how many steps a rank takes to pass a chunk up, or down.
func (p *node) steps() int { return max(1, p.kids) }

// up is step i of adding the children's sums to the own part and passing the
// sum to the parent; the root keeps it in Out. Between two children the sum
// lies in sum.
func (p *node) up(i int, sum sched.Ref) sched.Step {
	s := sched.Step{Recv: sched.Nobody, Src: sched.In.At(p.chunk), Dst: sum, Send: sched.Nobody}
	if i > 0 {
		s.Src = sum
	}
	if p.kids > 0 {
		s.Recv = p.kid[i]
	}
	if i == p.steps()-1 {
		s.Dst, s.Send = sched.Ref{}, p.parent
		if p.parent == sched.Nobody {
			s.Dst = sched.Out.At(p.chunk)
		}
	}
	return s
}

// down is step i of keeping what comes from the parent, or what the root has in
// In, and passing it to the children.
func (p *node) down(i int) sched.Step {
	s := sched.Step{Recv: p.parent, Dst: sched.Out.At(p.chunk), Send: sched.Nobody}
	if p.parent == sched.Nobody {
		s.Src = sched.In.At(p.chunk)
	}
	if i > 0 {
		s = sched.Step{Recv: sched.Nobody, Src: sched.Out.At(p.chunk)}
	}
	if p.kids > 0 {
		s.Send = p.kid[i]
	}
	return s
}

// alone is step i of a communicator of one rank: copy chunk i.
func alone(i int) sched.Step {
	return sched.Step{Recv: sched.Nobody, Src: sched.In.At(i), Dst: sched.Out.At(i), Send: sched.Nobody}
}
