package direct

import "github.com/ringo-go/ringo/sched"

// OneShot is the all-reduce of 1 hop; a rank sends n-1 times the data. Every
// rank sends all it has to all others and adds up what it receives, by itself.
// It is the choice for the smallest messages.
//
// All ranks add in the order of ranks, so that they get the same bits. A rank's own
// part has its turn as well. From rank 2 on it comes as a message to self, because
// a step adds to what it receives. Ranks 0 and 1 need none: they are the first pair
// of the sum, and 0 ⊕ 1 is 1 ⊕ 0. So two ranks take one send and one receive each.
type OneShot struct{ N int }

// Shape is one chunk in and out, no scratch: the sum grows in Out. In place that
// is In, but it has been sent by then.
func (a OneShot) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: 1, Out: 1} }

// Len is n sends and n receives, of which the first two ranks save the message
// to self and the others the first addition.
func (a OneShot) Len(r sched.Rank) int {
	if a.N == 1 {
		return 1
	}
	if r < 2 {
		return 2 * (a.N - 1)
	}
	return 2 * a.N
}

// At sends first, nearest rank first and self last, and then receives.
func (a OneShot) At(r sched.Rank, i int) sched.Step {
	n := a.N
	if n == 1 {
		return local(sched.In.At(0), sched.Out.At(0))
	}
	sends := a.Len(r) / 2
	if i < sends {
		return send(sched.In.At(0), r.After(i+1, n))
	}
	i -= sends
	switch {
	case r >= 2 && i == 0:
		return recv(0, sched.Out.At(0))
	case r >= 2:
		return add(sched.Rank(i), sched.Out.At(0), sched.Out.At(0))
	case i == 0:
		return add(1-r, sched.In.At(0), sched.Out.At(0)) // the own part is one of the first two
	default:
		return add(sched.Rank(i+1), sched.Out.At(0), sched.Out.At(0))
	}
}
