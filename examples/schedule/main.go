// Command schedule is the command ringo with one more algorithm: a star, in which rank 0
// receives the data of the others, sums them, and sends the result to all. It shows how to try
// an own schedule: write its steps, define it, and have ringo prove, print, simulate and measure
// it beside the others.
//
//	go run ./examples/schedule explain allreduce -np 4 -algo star
//	go run ./examples/schedule sim allreduce -np 64 -s 1M -algo star,ring,doubling
//	go run ./examples/schedule play allreduce -np 6 -algo star
//	go run ./examples/schedule bench allreduce -np 4 -e 64K -algo star
//	go run ./examples/schedule bench allreduce -g 4 -device emu -e 4K -algo star
package main

import (
	"log"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/cmd/command"
	"github.com/ringo-go/ringo/sched"
)

// A star is an all-reduce by way of rank 0. It takes 2 hops. Rank 0 receives and sends (n−1)·S
// bytes each, which limits the speed.
type star struct{ n int }

// Shape is one chunk of In and one of Out.
func (s star) Shape() sched.Shape { return sched.Shape{Ranks: s.n, In: 1, Out: 1} }

// Len is the number of steps of rank r.
func (s star) Len(r sched.Rank) int {
	if r == 0 {
		return 2*s.n - 1 // its own data, n−1 messages in, n−1 out
	}
	return 2
}

// At is what rank r does at step i.
func (s star) At(r sched.Rank, i int) sched.Step {
	in, out := sched.In.At(0), sched.Out.At(0)
	switch {
	case r != 0 && i == 0:
		return sched.Step{Recv: sched.Nobody, Src: in, Send: 0}
	case r != 0:
		return sched.Step{Recv: 0, Dst: out, Send: sched.Nobody}
	case i == 0:
		return sched.Step{Recv: sched.Nobody, Src: in, Dst: out, Send: sched.Nobody}
	case i < s.n:
		return sched.Step{Recv: sched.Rank(i), Src: out, Dst: out, Send: sched.Nobody}
	}
	return sched.Step{Recv: sched.Nobody, Src: out, Send: sched.Rank(i - s.n + 1)}
}

func main() {
	err := ringo.Define(ringo.Definition{
		Name: "star", Kind: ringo.KindAllReduce,
		Schedule: func(n int, _ sched.Rank) sched.Schedule { return star{n} },
	})
	if err != nil {
		log.Fatal(err) // Define proves the schedule for 1 to 8 ranks; the error names the wrong step
	}
	command.Main()
}
