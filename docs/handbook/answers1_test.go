package handbook_test

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

func Example_oneMessage() {
	m := sim.Model{
		Intra:     sim.Link{Latency: 5e-6, Bandwidth: 4e9}, // α is 5 µs, 1/β is 4 GB/s
		SlotBytes: 64 << 20, Slots: 2,                      // a queue that takes the message whole
	}
	for _, bytes := range []int64{8, 20_000, 1 << 20} {
		r, err := sim.Run(context.Background(), tree.BinomialBroadcast{N: 2}, m, bytes, sim.Options{})
		formula := 5e-6 + float64(bytes)/4e9
		fmt.Printf("%7d bytes: formula %6.1f µs, simulated %6.1f µs %v\n", bytes, formula*1e6, r.Time*1e6, err)
	}
	// Output:
	//       8 bytes: formula    5.0 µs, simulated    5.0 µs <nil>
	//   20000 bytes: formula   10.0 µs, simulated   10.0 µs <nil>
	// 1048576 bytes: formula  267.1 µs, simulated  267.1 µs <nil>
}

// A relay passes a value from rank to rank until rank n−1 has it.
type relay struct{ n int }

// Shape is one chunk in and one out; a broadcast's root alone has an In.
func (s relay) Shape() sched.Shape { return sched.Shape{Ranks: s.n, In: 1, Out: 1} }

// Len is one step.
func (s relay) Len(sched.Rank) int { return 1 }

// At receives from the rank before, keeps, and sends to the rank after.
func (s relay) At(r sched.Rank, _ int) sched.Step {
	step := sched.Step{Recv: r - 1, Dst: sched.Out.At(0), Send: r + 1}
	if r == 0 {
		step.Recv, step.Src = sched.Nobody, sched.In.At(0)
	}
	if int(r) == s.n-1 {
		step.Send = sched.Nobody
	}
	return step
}

// A bad relay has rank 0 send, and not keep, what it has.
type badRelay struct{ relay }

// At is relay's, but for rank 0.
func (s badRelay) At(r sched.Rank, i int) sched.Step {
	step := s.relay.At(r, i)
	if r == 0 {
		step.Dst = sched.Ref{}
	}
	return step
}

func Example_relay() {
	fmt.Print(sched.Format(relay{3}))
	fmt.Println()
	fmt.Println("relay:", sched.Check(relay{3}, sched.Broadcast(0), 2, false))
	fmt.Println("bad:  ", sched.Check(badRelay{relay{3}}, sched.Broadcast(0), 2, false))
	cost, err := sched.CostOf(relay{3}, 2)
	fmt.Printf("cost:  %+v %v\n", cost, err)
	// Output:
	// 3 ranks; chunks: 1 in, 1 out
	//
	// rank 0  value  keep    send
	//      0  In[0]  Out[0]  to 1
	//
	// rank 1  value   keep    send
	//      0  from 0  Out[0]  to 2
	//
	// rank 2  value   keep    send
	//      0  from 1  Out[0]
	//
	// relay: <nil>
	// bad:   check broadcast from 0: rank 0 Out[0]: is never written
	// cost:  {Hops:2 Steps:1 Sent:1 Received:1 Reduced:0} <nil>
}
