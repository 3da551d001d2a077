package commtest

import "github.com/ringo-go/ringo/sched"

// Star is an all-reduce: it reduces to rank 0, which then sends the result to all.
type Star struct{ N int }

func (s Star) Shape() sched.Shape { return sched.Shape{Ranks: s.N, In: 1, Out: 1} }

func (s Star) Len(r sched.Rank) int {
	if r == 0 {
		return 2*s.N - 1
	}
	return 2
}

func (s Star) At(r sched.Rank, i int) sched.Step {
	in, out := sched.Ref{Buf: sched.In}, sched.Ref{Buf: sched.Out}
	switch {
	case r != 0 && i == 0:
		return sched.Step{Recv: sched.Nobody, Src: in, Send: 0}
	case r != 0:
		return sched.Step{Recv: 0, Dst: out, Send: sched.Nobody}
	case i == 0:
		return sched.Step{Recv: sched.Nobody, Src: in, Dst: out, Send: sched.Nobody}
	case i < s.N:
		return sched.Step{Recv: sched.Rank(i), Src: out, Dst: out, Send: sched.Nobody}
	}
	return sched.Step{Recv: sched.Nobody, Src: out, Send: sched.Rank(i - s.N + 1)}
}
