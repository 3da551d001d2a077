package direct

import (
	"math/bits"

	"github.com/ringo-go/ringo/sched"
)

// The two schedules in this file work in ⌈log₂ n⌉ rounds for any n. In the
// round of reach s every rank talks to the two that are s places away on either
// side. Block j of rank r is chunk r+j. The reaches are ⌈n/2⌉, ⌈n/4⌉, …, 1, and a
// round of reach s after one of reach h moves blocks s … h-1, to where they are
// blocks 0 … h-s-1, or back. A round of m blocks takes ⌈m/2⌉ hops, because a rank
// stays two messages ahead.
//
// Sources: Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient algorithms for
// all-to-all communications in multiport message-passing systems", IEEE TPDS 8
// (1997), section 4; Träff, "Optimal, non-pipelined reduce-scatter and allreduce
// algorithms", arXiv:2410.14234 (2024).

// A wheel is where rank r of n stands in these rounds.
type wheel struct {
	r sched.Rank
	n int
}

// chunk is the one of block j.
func (w wheel) chunk(j int) int { return int(w.r.After(j, w.n)) }

// reaches are those of round t and the one before, counted from the widest.
func (w wheel) reaches(t int) (s, h int) {
	up := func(t int) int { return (w.n + 1<<t - 1) >> t }
	return up(t + 1), up(t)
}

// reduceScatter is step i of 2(n-1): the rounds go inwards. at says where block j
// lies, before and after something was added to it.
func (w wheel) reduceScatter(i int, at func(j int, added bool) sched.Ref) sched.Step {
	t := 0
	s, h := w.reaches(t)
	for ; i >= 2*(h-s); s, h = w.reaches(t) {
		i -= 2 * (h - s)
		t++
	}
	added := func(j int) bool { return t > 0 && j < w.n/2 } // the first round adds to blocks up to n/2
	j, sends := exchange(i, h-s)
	if sends {
		return send(at(s+j, added(s+j)), w.r.After(s, w.n))
	}
	return add(w.r.After(-s, w.n), at(j, added(j)), at(j, true))
}

// allGather is step i of 2(n-1): the rounds go outwards, and blocks lie in Out.
func (w wheel) allGather(i int) sched.Step {
	t := bits.Len(uint(w.n-1)) - 1
	s, h := w.reaches(t)
	for ; i >= 2*(h-s); s, h = w.reaches(t) {
		i -= 2 * (h - s)
		t--
	}
	j, sends := exchange(i, h-s)
	if sends {
		return send(sched.Out.At(w.chunk(j)), w.r.After(-s, w.n))
	}
	return recv(w.r.After(s, w.n), sched.Out.At(w.chunk(s+j)))
}

// LogAllGather takes ⌈log₂ n⌉ rounds, the fewest there can be, and sends (n-1)/n
// of the result a rank, the least possible: in each round a rank passes on as
// much as it has.
type LogAllGather struct{ N int }

// Shape is one chunk in and n out, Out[q] from rank q.
func (a LogAllGather) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: 1, Out: a.N} }

// Len is n-1 sends and n-1 receives.
func (a LogAllGather) Len(sched.Rank) int { return max(1, 2*(a.N-1)) }

// At step 0 sends the own chunk and keeps it as well.
func (a LogAllGather) At(r sched.Rank, i int) sched.Step {
	if a.N == 1 {
		return local(sched.In.At(0), sched.Out.At(0))
	}
	s := wheel{r, a.N}.allGather(i)
	if i == 0 {
		s.Src, s.Dst = sched.In.At(0), sched.Out.At(int(r))
	}
	return s
}

// LogReduceScatter takes ⌈log₂ n⌉ rounds, the fewest there can be, and sends
// (n-1)/n of the data a rank, the least possible: it is LogAllGather backwards.
type LogReduceScatter struct{ N int }

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
		return local(sched.In.At(0), sched.Out.At(0))
	}
	w := wheel{r, a.N}
	return w.reduceScatter(i, func(j int, added bool) sched.Ref {
		switch {
		case !added:
			return sched.In.At(w.chunk(j))
		case j == 0:
			return sched.Out.At(0)
		default:
			return sched.Tmp.At(j - 1)
		}
	})
}
