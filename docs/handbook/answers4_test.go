package handbook_test

import (
	"fmt"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/hier"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

func Example_innerNodes() {
	s := tree.Broadcast{N: 7}
	var inner [2][]sched.Rank // the ranks that pass on chunk 0, and chunk 1
	for r := sched.Rank(1); r < 7; r++ {
		for i := range s.Len(r) {
			step := s.At(r, i)
			if step.Recv != sched.Nobody && step.Send != sched.Nobody {
				c := step.Dst.Chunk
				inner[c] = append(inner[c], r)
			}
		}
	}
	fmt.Println("pass on chunk 0:", inner[0])
	fmt.Println("pass on chunk 1:", inner[1])
	// Output:
	// pass on chunk 0: [2 4 6]
	// pass on chunk 1: [1 3 5]
}

// Twice is recursive doubling that asks the same partner twice.
type twice struct{ direct.RecursiveDoubling }

// At has the partner of round 1 in round 2 as well.
func (s twice) At(r sched.Rank, i int) sched.Step {
	step := s.RecursiveDoubling.At(r, i)
	if step.Recv != sched.Nobody {
		step.Recv = r ^ 1
	}
	if step.Send != sched.Nobody {
		step.Send = r ^ 1
	}
	return step
}

func Example_twice() {
	fmt.Println(sched.Check(twice{direct.RecursiveDoubling{N: 4}}, sched.AllReduce, 2, false))
	// Output:
	// check all-reduce: rank 0 step 2 (from 1 ⊕ Out[0] → Out[0]): counts the contribution of rank 0 twice: (0+1)[0] and (0+1)[0]
}

// Xor is an all-gather in log₂ n rounds, for powers of two: in round k ranks whose numbers
// differ in bit k exchange all they have, 2ᵏ blocks.
type xor struct{ n int }

// Shape is one chunk in, n out.
func (s xor) Shape() sched.Shape { return sched.Shape{Ranks: s.n, In: 1, Out: s.n} }

// Len is n−1 sends and n−1 receives.
func (s xor) Len(sched.Rank) int { return 2 * (s.n - 1) }

// At takes turns in sending and receiving, so that no queue has to hold a round.
func (s xor) At(r sched.Rank, i int) sched.Step {
	k := 0
	for ; i >= 2<<k; k++ {
		i -= 2 << k
	}
	mine := int(r) &^ (1<<k - 1) // the first of the 2ᵏ blocks that this rank has
	partner := r ^ 1<<k
	if i%2 == 1 {
		return sched.Step{Recv: partner, Dst: sched.Out.At(mine ^ 1<<k + i/2), Send: sched.Nobody}
	}
	if k == 0 {
		return sched.Step{Recv: sched.Nobody, Src: sched.In.At(0), Dst: sched.Out.At(mine), Send: partner}
	}
	return sched.Step{Recv: sched.Nobody, Src: sched.Out.At(mine + i/2), Send: partner}
}

func Example_xor() {
	for _, n := range []int{2, 8, 64, 6} {
		fmt.Println(n, "ranks:", sched.Check(xor{n}, sched.AllGather, 2, false))
	}
	// Output:
	// 2 ranks: <nil>
	// 8 ranks: <nil>
	// 64 ranks: <nil>
	// 6 ranks: check all-gather: rank 2 step 6 (Out[0] → 6): peer 6 is none of the 6 ranks
}

// Hasty is one-shot in which each rank adds what comes from the rank after it first.
type hasty struct{ n int }

// Shape is a chunk in and out.
func (s hasty) Shape() sched.Shape { return sched.Shape{Ranks: s.n, In: 1, Out: 1} }

// Len is n−1 sends and n−1 receives.
func (s hasty) Len(sched.Rank) int { return 2 * (s.n - 1) }

// At sends to all, then adds up from its own place on.
func (s hasty) At(r sched.Rank, i int) sched.Step {
	if i < s.n-1 {
		return sched.Step{Recv: sched.Nobody, Src: sched.In.At(0), Send: r.After(i+1, s.n)}
	}
	src := sched.Out.At(0)
	if i == s.n-1 {
		src = sched.In.At(0)
	}
	return sched.Step{Recv: r.After(i-s.n+2, s.n), Src: src, Dst: sched.Out.At(0), Send: sched.Nobody}
}

func Example_hasty() {
	fmt.Println(sched.Check(hasty{2}, sched.AllReduce, 2, false))
	fmt.Println(sched.Check(hasty{3}, sched.AllReduce, 2, false))
	// Output:
	// <nil>
	// check all-reduce: rank 1 Out[0]: is added up in another order than on rank 0, so the bits may differ: (0+(1+2))[0] and (2+(0+1))[0]
}

func Example_thenBroadcast() {
	s := sched.Then(tree.BinomialReduce{N: 8}, tree.BinomialBroadcast{N: 8})
	fmt.Println(sched.Check(s, sched.AllReduce, 2, false))
	composed, _ := sched.CostOf(s, 2)
	doubling, _ := sched.CostOf(direct.RecursiveDoubling{N: 8}, 2)
	fmt.Printf("composed: %+v\ndoubling: %+v\n", composed, doubling)
	// Output:
	// <nil>
	// composed: {Hops:6 Steps:6 Sent:3 Received:3 Reduced:3}
	// doubling: {Hops:3 Steps:4 Sent:3 Received:3 Reduced:3}
}

func Example_hierarchy() {
	s := hier.AllReduce(direct.ReduceScatter{N: 4}, direct.RecursiveDoubling{N: 2}, direct.AllGather{N: 4})
	fmt.Println(sched.Check(s, sched.AllReduce, 2, false))
	few, _ := sched.CostOf(s, 8)
	many, _ := sched.CostOf(hier.AllReduce(ring.ReduceScatter{N: 4}, ring.AllReduce{N: 2}, ring.AllGather{N: 4}), 8)
	fmt.Println("hops:", few.Hops, "of direct parts,", many.Hops, "of rings")

	// Ranks that lie in turn on two nodes: 0 2 4 6 are a node, 1 3 5 7 the other.
	turn := sched.Relabel(s, []sched.Rank{0, 2, 4, 6, 1, 3, 5, 7})
	fmt.Println(sched.Check(turn, sched.AllReduce, 2, false))
	// Output:
	// <nil>
	// hops: 3 of direct parts, 14 of rings
	// <nil>
}
