package direct

import "github.com/ringo-go/ringo/sched"

// AllGather takes 1 hop and sends (n-1)/n of the result a rank: every rank
// sends its chunk to all others.
type AllGather struct{ N int }

// Shape is one chunk in and n out, Out[q] from rank q.
func (a AllGather) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: 1, Out: a.N} }

// Len is n-1 sends, the first of which also stores the own chunk, and n-1
// receives.
func (a AllGather) Len(sched.Rank) int { return max(1, 2*(a.N-1)) }

// At sends first and then receives, nearest rank first.
func (a AllGather) At(r sched.Rank, i int) sched.Step {
	n := a.N
	switch {
	case n == 1:
		return local(sched.In.At(0), sched.Out.At(0))
	case i == 0:
		return sched.Step{Recv: sched.Nobody, Src: sched.In.At(0), Dst: sched.Out.At(int(r)), Send: r.After(1, n)}
	case i < n-1:
		return send(sched.In.At(0), r.After(i+1, n))
	default:
		from := r.After(n-2-i, n)
		return recv(from, sched.Out.At(int(from)))
	}
}
