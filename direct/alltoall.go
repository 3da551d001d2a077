package direct

import "github.com/ringo-go/ringo/sched"

// AllToAll takes 1 hop and sends (n-1)/n of the data a rank: In[q] goes to rank
// q, Out[q] comes from it. Sends and receives take turns, each with the partners
// one place further away, so that no rank is the target of two at once. It has
// no form in place.
//
// Lead is how many messages a rank sends ahead; any number passes, since no two
// go the same way. The hop counts for a Lead of n-1, the choice for small
// messages; fewer use less memory of queues at a time. 0 is DefaultLead.
type AllToAll struct{ N, Lead int }

// Shape is n chunks in and out.
func (a AllToAll) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: a.N, Out: a.N} }

// Len is the own chunk and n-1 sends and receives.
func (a AllToAll) Len(sched.Rank) int { return 2*a.N - 1 }

// At copies the own chunk after the first send, while that is on its way.
func (a AllToAll) At(r sched.Rank, i int) sched.Step {
	if a.N == 1 || i == 1 {
		return local(in(int(r)), out(int(r)))
	}
	j, sends := exchange(max(0, i-1), a.N-1, leadOr(a.Lead))
	if sends {
		to := after(r, j+1, a.N)
		return send(in(int(to)), to)
	}
	from := after(r, -j-1, a.N)
	return recv(from, out(int(from)))
}
