package direct

import "github.com/ringo-go/ringo/sched"

// Scatter takes 1 hop; the root sends (n-1)/n of the data, and a rank receives
// its chunk once.
type Scatter struct {
	N    int
	Root sched.Rank
}

// Shape is n chunks in, read at the root only, and one out.
func (s Scatter) Shape() sched.Shape { return sched.Shape{Ranks: s.N, In: s.N, Out: 1} }

// Len is n for the root and 1 for the others.
func (s Scatter) Len(r sched.Rank) int {
	if r == s.Root {
		return s.N
	}
	return 1
}

// At sends to the ranks after the root in turn and copies the own chunk last.
func (s Scatter) At(r sched.Rank, i int) sched.Step {
	switch to := s.Root.After(i+1, s.N); {
	case r != s.Root:
		return recv(s.Root, sched.Out.At(0))
	case to == r:
		return local(sched.In.At(int(r)), sched.Out.At(0))
	default:
		return send(sched.In.At(int(to)), to)
	}
}
