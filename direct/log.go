package direct

import (
	"math/bits"

	"github.com/ringo-go/ringo/sched"
)

// The three schedules in this file work in ⌈log₂ n⌉ rounds for any n. In the
// round of reach s every rank talks to those s places before and behind it. Seen
// from rank r, block j is chunk r+j; the reaches are ⌈n/2⌉, ⌈n/4⌉, …, 1, and a
// round of reach s after one of reach h moves blocks s … h-1, to where they are
// blocks 0 … h-s-1, or back.
//
// Their Lead is how many messages a rank sends ahead in a round, at most the
// messages a queue holds; the hops count for a Lead of n/2. 0 is DefaultLead.
//
// Sources: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for
// all-to-all communications in multiport message-passing systems", IEEE TPDS 8
// (1997), section 4; Träff, "Optimal, non-pipelined reduce-scatter and allreduce
// algorithms", arXiv:2410.14234 (2024).

// A wheel is where rank r of n stands in these rounds.
type wheel struct {
	r       sched.Rank
	n, lead int
}

// chunk is the one of block j.
func (w wheel) chunk(j int) int { return mod(int(w.r)+j, w.n) }

// reaches are those of round t and the one before, counted from the widest.
func (w wheel) reaches(t int) (s, h int) {
	up := func(t int) int { return (w.n + 1<<t - 1) >> t }
	return up(t + 1), up(t)
}

// reduceScatter is step i of 2(n-1): the rounds go inwards, and a block that is
// received is added to what at says it grew in so far.
func (w wheel) reduceScatter(i int, at func(j int, added bool) sched.Ref) sched.Step {
	t := 0
	s, h := w.reaches(t)
	for ; i >= 2*(h-s); s, h = w.reaches(t) {
		i -= 2 * (h - s)
		t++
	}
	added := func(j int) bool { return t > 0 && j < w.n/2 } // the first round adds to blocks up to n/2
	j, sends := exchange(i, h-s, w.lead)
	if sends {
		return send(at(s+j, added(s+j)), after(w.r, s, w.n))
	}
	return add(after(w.r, -s, w.n), at(j, added(j)), at(j, true))
}

// allGather is step i of 2(n-1): the rounds go outwards, and blocks lie in Out.
func (w wheel) allGather(i int) sched.Step {
	t := bits.Len(uint(w.n-1)) - 1
	s, h := w.reaches(t)
	for ; i >= 2*(h-s); s, h = w.reaches(t) {
		i -= 2 * (h - s)
		t--
	}
	j, sends := exchange(i, h-s, w.lead)
	if sends {
		return send(out(w.chunk(j)), after(w.r, -s, w.n))
	}
	return recv(after(w.r, s, w.n), out(w.chunk(s+j)))
}

// LogAllGather takes ⌈log₂ n⌉ hops, the fewest there can be, and sends (n-1)/n
// of the result a rank, the least possible: in each round a rank passes on as
// much as it has.
type LogAllGather struct{ N, Lead int }

// Shape is one chunk in and n out, Out[q] from rank q.
func (a LogAllGather) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: 1, Out: a.N} }

// Len is n-1 sends and n-1 receives.
func (a LogAllGather) Len(sched.Rank) int { return max(1, 2*(a.N-1)) }

// At step 0 sends the own chunk and keeps it as well.
func (a LogAllGather) At(r sched.Rank, i int) sched.Step {
	if a.N == 1 {
		return local(in(0), out(0))
	}
	s := wheel{r, a.N, leadOr(a.Lead)}.allGather(i)
	if i == 0 {
		s.Src, s.Dst = in(0), out(int(r))
	}
	return s
}

// LogReduceScatter takes ⌈log₂ n⌉ hops, the fewest there can be, and sends
// (n-1)/n of the data a rank, the least possible: it is LogAllGather backwards.
type LogReduceScatter struct{ N, Lead int }

// Shape is n chunks in, In[q] for rank q, one out and about n/2 of scratch for
// the sums of the first half of the blocks; block 0 is the rank's own and grows
// in Out.
func (a LogReduceScatter) Shape() sched.Shape {
	return sched.Shape{Ranks: a.N, In: a.N, Out: 1, Tmp: max(0, a.N/2-1)}
}

// Len is n-1 sends and n-1 receives.
func (a LogReduceScatter) Len(sched.Rank) int { return max(1, 2*(a.N-1)) }

// At sends and adds round by round.
func (a LogReduceScatter) At(r sched.Rank, i int) sched.Step {
	if a.N == 1 {
		return local(in(0), out(0))
	}
	w := wheel{r, a.N, leadOr(a.Lead)}
	return w.reduceScatter(i, func(j int, added bool) sched.Ref {
		switch {
		case !added:
			return in(w.chunk(j))
		case j == 0:
			return out(0)
		default:
			return tmp(j - 1)
		}
	})
}

// LogAllReduce takes 2⌈log₂ n⌉ hops and sends 2(n-1)/n of the data a rank, the
// least possible, for any n: it is LogReduceScatter and then LogAllGather.
type LogAllReduce struct{ N, Lead int }

// Shape is n chunks in and out, no scratch: the sums grow in Out.
func (a LogAllReduce) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: a.N, Out: a.N} }

// Len is 2(n-1) sends and as many receives; the last addition and the first send
// of the sum are one step.
func (a LogAllReduce) Len(sched.Rank) int { return max(1, 4*(a.N-1)-1) }

// At goes through the rounds inwards and outwards.
func (a LogAllReduce) At(r sched.Rank, i int) sched.Step {
	if a.N == 1 {
		return local(in(0), out(0))
	}
	w := wheel{r, a.N, leadOr(a.Lead)}
	last := 2*(a.N-1) - 1
	if i > last {
		return w.allGather(i - last)
	}
	s := w.reduceScatter(i, func(j int, added bool) sched.Ref {
		if added {
			return out(w.chunk(j))
		}
		return in(w.chunk(j))
	})
	if i == last { // the last sum is the first to be spread, to the same rank
		s.Send = s.Recv
	}
	return s
}
