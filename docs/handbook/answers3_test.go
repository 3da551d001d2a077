package handbook_test

import (
	"fmt"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
)

// An impatient ring stops one step early: the last rank to add keeps its sum, but the
// second way round is one hop too short.
type impatient struct{ ring.AllReduce }

// Len is one less than it should be.
func (a impatient) Len(r sched.Rank) int { return a.AllReduce.Len(r) - 1 }

func Example_impatient() {
	fmt.Println(sched.Check(impatient{ring.AllReduce{N: 3}}, sched.AllReduce, 2, false))
	// Output:
	// check all-reduce: 1 of the messages from rank 0 to rank 1 are never received
}

// A deaf ring has every rank receive before it sends.
type deaf struct{ ring.AllGather }

// At receives first.
func (a deaf) At(r sched.Rank, i int) sched.Step {
	in, out := sched.In.At(0), sched.Out.At(int(r))
	before, after := r.After(-1, a.N), r.After(1, a.N)
	switch i {
	case 0:
		return sched.Step{Recv: before, Dst: sched.Out.At(int(before)), Send: sched.Nobody}
	default:
		return sched.Step{Recv: sched.Nobody, Src: in, Dst: out, Send: after}
	}
}

// Len is a receive and a send.
func (a deaf) Len(sched.Rank) int { return 2 }

func Example_deaf() {
	fmt.Println(sched.Check(deaf{ring.AllGather{N: 2}}, sched.AllGather, 2, false))
	// Output:
	// check all-gather: deadlock at depth 2, 2 of 2 ranks wait:
	// 	rank 0 step 0 (from 1 → Out[1]): nothing comes from rank 1
	// 	rank 1 step 0 (from 0 → Out[0]): nothing comes from rank 0
}

func Example_ringOverNodes() {
	crossings := func(order []sched.Rank) (k int) {
		s := sched.Relabel(ring.AllReduce{N: 8}, order)
		for r := range sched.Rank(8) {
			for i := range s.Len(r) {
				if to := s.At(r, i).Send; to != sched.Nobody && to/4 != r/4 {
					k++
				}
			}
		}
		return k
	}
	fmt.Println("node after node:", crossings([]sched.Rank{0, 1, 2, 3, 4, 5, 6, 7}), "messages cross")
	fmt.Println("in turn:        ", crossings([]sched.Rank{0, 4, 1, 5, 2, 6, 3, 7}), "messages cross")
	// Output:
	// node after node: 28 messages cross
	// in turn:         112 messages cross
}
