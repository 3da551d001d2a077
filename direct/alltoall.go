package direct

import "github.com/ringo-go/ringo/sched"

// AllToAll takes 1 hop and sends (n-1)/n of the data a rank: In[q] goes to rank
// q, Out[q] comes from it. Sends and receives take turns, each round with
// partners one place further away, so that no rank is the target of two.
// It has no form in place.
type AllToAll struct{ N int }

// Shape is n chunks in and out.
func (a AllToAll) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: a.N, Out: a.N} }

// Len is the own chunk and n-1 sends and receives.
func (a AllToAll) Len(sched.Rank) int { return 2*a.N - 1 }

// At copies the own chunk after the first send, while that is on its way.
func (a AllToAll) At(r sched.Rank, i int) sched.Step {
	if a.N == 1 {
		return local(in(0), out(0))
	}
	switch {
	case i == 0:
		to := after(r, 1, a.N)
		return send(in(int(to)), to)
	case i == 1:
		return local(in(int(r)), out(int(r)))
	case i%2 == 0:
		from := after(r, -i/2, a.N)
		return recv(from, out(int(from)))
	default:
		to := after(r, (i+1)/2, a.N)
		return send(in(int(to)), to)
	}
}
