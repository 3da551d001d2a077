package direct

import "github.com/ringo-go/ringo/sched"

// HalvingDoubling is the all-reduce of 2 log₂ n rounds in which a rank sends
// 2(n-1)/n of the data, the least possible (Rabenseifner's algorithm). In each
// round a rank halves the part it is responsible for and sends away its sums of
// the other half, until it has the sum of one chunk; then the rounds are undone
// and the parts double. Where n is no power of two, some ranks are folded into
// others at both ends, which costs them the data once more each way.
//
// A round of m chunks takes ⌈m/2⌉ hops, n in all, because a rank stays no more
// than two messages ahead of its partner.
//
// Source: Thakur, Rabenseifner and Gropp (2005), section 4.5.
type HalvingDoubling struct{ N int }

// Shape is a chunk for each rank of the greatest power of two up to n, and no
// scratch: the sums grow in Out.
func (a HalvingDoubling) Shape() sched.Shape {
	p := coreOf(a.N).size
	return sched.Shape{Ranks: a.N, In: p, Out: p}
}

// Len is two steps for each chunk and half, of which the last and the first of
// the two halves of the algorithm are one; folded ranks send and receive all.
func (a HalvingDoubling) Len(r sched.Rank) int {
	p := coreOf(a.N).size
	_, other, ok := coreOf(a.N).member(r)
	switch {
	case a.N == 1:
		return 1
	case !ok:
		return 2 * p
	case other != sched.Nobody:
		return 4*(p-1) - 1 + 2*p
	default:
		return 4*(p-1) - 1
	}
}

// At goes through fold in, halve, double, fold out.
func (a HalvingDoubling) At(r sched.Rank, i int) sched.Step {
	c := coreOf(a.N)
	p := c.size
	v, other, ok := c.member(r)
	switch {
	case a.N == 1:
		return local(sched.In.At(0), sched.Out.At(0))
	case !ok && i < p:
		return send(sched.In.At(i), other)
	case !ok:
		return recv(other, sched.Out.At(i-p))
	}
	if other != sched.Nobody {
		if i < p {
			return add(other, sched.In.At(i), sched.Out.At(i))
		}
		i -= p
	}
	if last := 2*(p-1) - 1; i < last {
		return a.halve(c, v, other, i)
	} else if i == last { // the last sum is the first to be spread, to the same partner
		s := a.halve(c, v, other, i)
		s.Send = s.Recv
		return s
	} else if i -= last; i < 2*(p-1) {
		return a.double(c, v, i)
	}
	return send(sched.Out.At(i-2*(p-1)), other)
}

// halve is step i of the rounds with the partners p/2, …, 2, 1 away.
func (a HalvingDoubling) halve(c core, v int, other sched.Rank, i int) sched.Step {
	m := c.size / 2
	for ; i >= 2*m; m /= 2 {
		i -= 2 * m
	}
	partner := c.rank(v ^ m)
	src := sched.Out.At
	if m == c.size/2 && other == sched.Nobody {
		src = sched.In.At // nothing added yet
	}
	j, sends := exchange(i, m)
	if sends {
		return send(src((v^m)&^(m-1)+j), partner)
	}
	own := v&^(m-1) + j
	return add(partner, src(own), sched.Out.At(own))
}

// double is step i of the rounds with the partners 1, 2, …, p/2 away.
func (a HalvingDoubling) double(c core, v, i int) sched.Step {
	m := 1
	for ; i >= 2*m; m *= 2 {
		i -= 2 * m
	}
	partner := c.rank(v ^ m)
	j, sends := exchange(i, m)
	if sends {
		return send(sched.Out.At(v&^(m-1)+j), partner)
	}
	return recv(partner, sched.Out.At((v^m)&^(m-1)+j))
}
