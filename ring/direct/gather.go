package direct

import "github.com/ringo-go/ringo/sched"

// Gather takes 1 hop; a rank sends its chunk once, and the root receives (n-1)/n
// of the result.
type Gather struct {
	N    int
	Root sched.Rank
}

// Shape is one chunk in and n out, written at the root only.
func (g Gather) Shape() sched.Shape { return sched.Shape{Ranks: g.N, In: 1, Out: g.N} }

// Len is n for the root and 1 for the others.
func (g Gather) Len(r sched.Rank) int {
	if r == g.Root {
		return g.N
	}
	return 1
}

// At receives from the ranks after the root in turn.
func (g Gather) At(r sched.Rank, i int) sched.Step {
	switch from := g.Root.After(i, g.N); {
	case r != g.Root:
		return send(sched.In.At(0), g.Root)
	case i == 0:
		return local(sched.In.At(0), sched.Out.At(int(r)))
	default:
		return recv(from, sched.Out.At(int(from)))
	}
}
