package direct

import "github.com/ringo-go/ringo/sched"

// RecursiveDoubling is the all-reduce of log₂ n hops in which a rank sends log₂ n
// times the data: in round k all ranks exchange their sums with the rank whose
// number differs in bit k. Where n is no power of two, some ranks are folded
// into others, for up to 2 more hops on ⌊log₂ n⌋. It is the choice for small messages of
// many ranks.
//
// Both sides of an exchange compute the same sum, so all ranks have the same
// bits.
//
// Source: Thakur, Rabenseifner and Gropp (2005), section 4.5.
type RecursiveDoubling struct{ N int }

// Shape is one chunk in and out, no scratch: the sum grows in Out.
func (a RecursiveDoubling) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: 1, Out: 1} }

// Len is a step for each round and one more.
func (a RecursiveDoubling) Len(r sched.Rank) int {
	c := coreOf(a.N)
	if _, _, ok := c.member(r); !ok {
		return 2
	}
	return c.rounds + 1
}

// At adds what came in round i-1, or from the folded half, and sends the sum to
// the partner of round i, or at the end to the folded half.
func (a RecursiveDoubling) At(r sched.Rank, i int) sched.Step {
	if a.N == 1 {
		return local(sched.In.At(0), sched.Out.At(0))
	}
	c := coreOf(a.N)
	v, other, ok := c.member(r)
	switch {
	case !ok && i == 0:
		return send(sched.In.At(0), other)
	case !ok:
		return recv(other, sched.Out.At(0))
	}
	s := sched.Step{Recv: other, Src: sched.In.At(0), Dst: sched.Out.At(0), Send: other}
	if i > 0 {
		s.Recv = c.rank(v ^ 1<<(i-1))
	}
	if i < c.rounds {
		s.Send = c.rank(v ^ 1<<i)
	}
	if s.Recv == sched.Nobody {
		s.Dst = sched.Ref{} // nothing added yet
	}
	if i > 1 || i == 1 && other != sched.Nobody {
		s.Src = sched.Out.At(0)
	}
	return s
}
