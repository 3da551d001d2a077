package direct

import "github.com/ringo-go/ringo/sched"

// ReduceScatter takes 1 hop and sends (n-1)/n of the data a rank: every rank
// sends each other rank its chunk, and adds up what it receives for its own. The
// order of adding differs from rank to rank, which no other rank can tell.
type ReduceScatter struct{ N int }

// Shape is n chunks in, In[q] for rank q, and one out.
func (a ReduceScatter) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: a.N, Out: 1} }

// Len is n-1 sends and n-1 receives.
func (a ReduceScatter) Len(sched.Rank) int { return max(1, 2*(a.N-1)) }

// At sends first and then receives, nearest rank first.
func (a ReduceScatter) At(r sched.Rank, i int) sched.Step {
	n := a.N
	switch {
	case n == 1:
		return local(sched.In.At(0), sched.Out.At(0))
	case i < n-1:
		to := r.After(i+1, n)
		return send(sched.In.At(int(to)), to)
	case i == n-1:
		return add(r.After(-1, n), sched.In.At(int(r)), sched.Out.At(0))
	default:
		return add(r.After(n-2-i, n), sched.Out.At(0), sched.Out.At(0))
	}
}
