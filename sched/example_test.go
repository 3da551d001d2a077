package sched_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

// A star is an all-reduce through rank 0: all send it what they have, it adds up
// and sends the sum to all.
type star struct{ n int }

func (s star) Shape() sched.Shape { return sched.Shape{Ranks: s.n, In: 1, Out: 1} }

func (s star) Len(r sched.Rank) int {
	if r == 0 {
		return 2 * (s.n - 1)
	}
	return 2
}

func (s star) At(r sched.Rank, i int) sched.Step {
	own, sum := sched.In.At(0), sched.Out.At(0)
	switch {
	case r != 0 && i == 0:
		return sched.Step{Recv: sched.Nobody, Src: own, Send: 0}
	case r != 0:
		return sched.Step{Recv: 0, Dst: sum, Send: sched.Nobody}
	case i == 0:
		return sched.Step{Recv: 1, Src: own, Dst: sum, Send: sched.Nobody}
	case i < s.n-1:
		return sched.Step{Recv: sched.Rank(i + 1), Src: sum, Dst: sum, Send: sched.Nobody}
	default:
		return sched.Step{Recv: sched.Nobody, Src: sum, Send: sched.Rank(i - s.n + 2)}
	}
}

// An algorithm of one's own: a table, which is then proved, counted, timed and
// printed by what knows nothing of it. The table above it says
//
//	type star struct{ n int }
//
//	func (s star) Shape() sched.Shape { return sched.Shape{Ranks: s.n, In: 1, Out: 1} }
//	func (s star) Len(r sched.Rank) int
//	func (s star) At(r sched.Rank, i int) sched.Step
func Example() {
	s := star{n: 4}
	fmt.Println("proof:", sched.Check(s, sched.AllReduce, 2, true))
	cost, _ := sched.CostOf(s, 2)
	fmt.Println("hops:", cost.Hops, "sent by the busiest rank:", cost.Sent, "times the data")
	result, _ := sim.Run(context.Background(), s, sim.NVLink, 8, sim.Options{})
	fmt.Printf("8 bytes over NVLink: %.1f µs\n", result.Time*1e6)
	fmt.Print(sched.Format(s))
	// Output:
	// proof: <nil>
	// hops: 2 sent by the busiest rank: 3 times the data
	// 8 bytes over NVLink: 1.5 µs
	// 4 ranks; chunks: 1 in, 1 out
	//
	// rank 0  value            keep    send
	//      0  from 1 ⊕ In[0]   Out[0]
	//      1  from 2 ⊕ Out[0]  Out[0]
	//      2  from 3 ⊕ Out[0]  Out[0]
	//      3  Out[0]                   to 1
	//      4  Out[0]                   to 2
	//      5  Out[0]                   to 3
	//
	// rank 1  value   keep    send
	//      0  In[0]           to 0
	//      1  from 0  Out[0]
	//
	// rank 2  value   keep    send
	//      0  In[0]           to 0
	//      1  from 0  Out[0]
	//
	// rank 3  value   keep    send
	//      0  In[0]           to 0
	//      1  from 0  Out[0]
}

// What a proof says of a table with a fault: rank 0 keeps what rank 3 sends and
// forgets to add what it has.
func ExampleCheck_fault() {
	t := tableOf(star{n: 4})
	t.steps[0][2].Src = sched.Ref{}
	fmt.Println(sched.Check(t, sched.AllReduce, 2, false))
	// Output:
	// check all-reduce: rank 0 Out[0]: lacks the contribution of ranks [0 1 2]: it holds 3[0]
}

// A ring runs along the wires of a machine when its ranks are put in their order.
func ExampleRelabel() {
	s := sched.Relabel(ring.Broadcast{N: 4, Root: 0}, []sched.Rank{0, 2, 1, 3})
	for r := range sched.Rank(4) {
		fmt.Printf("rank %d: %v\n", r, s.At(r, 0))
	}
	// Output:
	// rank 0: In[0] → Out[0] → 2
	// rank 1: from 2 → Out[0] → 3
	// rank 2: from 0 → Out[0] → 1
	// rank 3: from 1 → Out[0]
}

// A reduction to rank 0 and a broadcast from there are an all-reduce; cut in four
// parts it is a pipeline.
func ExampleThen() {
	s := sched.Then(ring.Reduce{N: 3}, ring.Broadcast{N: 3})
	fmt.Println(s.Shape(), sched.Check(s, sched.AllReduce, 2, true))
	parts := sched.Split(s, 4)
	fmt.Println(parts.Shape(), sched.Check(parts, sched.AllReduce, 2, true))
	// Output:
	// {3 1 1 0} <nil>
	// {3 4 4 0} <nil>
}

// What happens on the way, with the names of contributions in the place of numbers.
func ExampleWatch() {
	err := sched.Watch(star{n: 3}, sched.AllReduce, 2, false, func(e sched.Event) {
		if e.Rank == 0 {
			fmt.Printf("rank 0 step %d: %v is %v, of ranks %v\n", e.Index, e.Step, e.Value, e.Value.From())
		}
	})
	fmt.Println(err)
	// Output:
	// rank 0 step 0: from 1 ⊕ In[0] → Out[0] is (0+1)[0], of ranks [0 1]
	// rank 0 step 1: from 2 ⊕ Out[0] → Out[0] is (2+(0+1))[0], of ranks [0 1 2]
	// rank 0 step 2: Out[0] → 1 is (2+(0+1))[0], of ranks [0 1 2]
	// rank 0 step 3: Out[0] → 2 is (2+(0+1))[0], of ranks [0 1 2]
	// <nil>
}

// A table in which rank 1 waits for what nobody sends is refuted at its place.
func ExampleRefutation() {
	var refutation *sched.Refutation
	if err := sched.Check(deaf{star{n: 3}}, sched.AllReduce, 2, false); errors.As(err, &refutation) {
		for _, p := range refutation.Faults {
			fmt.Printf("rank %d step %d: %s\n", p.Rank, p.Step, p.Why)
		}
	}
	// Output:
	// rank 1 step 1: nothing comes from rank 2
}

// deaf is a star whose rank 1 waits for rank 2.
type deaf struct{ star }

func (d deaf) At(r sched.Rank, i int) sched.Step {
	s := d.star.At(r, i)
	if r == 1 && s.Recv == 0 {
		s.Recv = 2
	}
	return s
}
