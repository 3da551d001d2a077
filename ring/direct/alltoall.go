package direct

import "github.com/ringo-go/ringo/sched"

// AlltoAll sends (n-1)/n of the data a rank, directly: In[q] goes to rank q, Out[q]
// comes from it. Sends and receives take turns, each with the partners one place
// further away, so that no rank is the target of two at once; a rank stays two
// messages ahead, which makes ⌈(n-1)/2⌉ hops. It has no form in place.
type AlltoAll struct{ N int }

// Shape is n chunks in and out.
func (a AlltoAll) Shape() sched.Shape { return sched.Shape{Ranks: a.N, In: a.N, Out: a.N} }

// Len is the own chunk and n-1 sends and receives.
func (a AlltoAll) Len(sched.Rank) int { return 2*a.N - 1 }

// At copies the own chunk after the first send, while that is on its way.
func (a AlltoAll) At(r sched.Rank, i int) sched.Step {
	if a.N == 1 || i == 1 {
		return local(sched.In.At(int(r)), sched.Out.At(int(r)))
	}
	j, sends := exchange(max(0, i-1), a.N-1)
	if sends {
		to := r.After(j+1, a.N)
		return send(sched.In.At(int(to)), to)
	}
	from := r.After(-j-1, a.N)
	return recv(from, sched.Out.At(int(from)))
}
