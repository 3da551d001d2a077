package handbook_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

// Radix is an all-reduce of kⁱ ranks in i hops. Written to base k, ranks whose numbers
// differ in one digit alone are a group, and each round is a one-shot in every group.
func radix(n, k int) sched.Schedule {
	var all sched.Schedule
	for stride := 1; stride < n; stride *= k {
		round := groups(n, k, stride)
		if all == nil {
			all = round
		} else {
			all = sched.Then(all, round)
		}
	}
	return all
}

// Groups is a round: one-shots among k ranks that are stride apart.
func groups(n, k, stride int) sched.Schedule {
	var side []sched.Group
	for first := range n {
		if first/stride%k != 0 {
			continue // its digit is not 0, so another rank is the first of its group
		}
		g := sched.Group{Schedule: direct.OneShot{N: k}}
		for i := range k {
			g.Members = append(g.Members, sched.Rank(first+i*stride))
		}
		side = append(side, g)
	}
	return sched.Beside(sched.Shape{Ranks: n, In: 1, Out: 1}, side...)
}

func Example_radixIsProved() {
	for _, n := range []int{4, 16, 64} {
		s := radix(n, 4)
		cost, _ := sched.CostOf(s, 2)
		fmt.Println(n, "ranks:", sched.Check(s, sched.AllReduce, 2, false), cost.Hops, "hops, sends", cost.Sent, "S")
	}
	// Both rounds with the same stride: the first idea of someone in a hurry.
	wrong := sched.Then(groups(16, 4, 1), groups(16, 4, 1))
	fmt.Println(sched.Check(wrong, sched.AllReduce, 2, false))
	// Output:
	// 4 ranks: <nil> 1 hops, sends 3 S
	// 16 ranks: <nil> 2 hops, sends 6 S
	// 64 ranks: <nil> 3 hops, sends 9 S
	// check all-reduce: rank 0 step 9 (from 1 ⊕ Out[0] → Out[0]): counts the contribution of rank 0 twice: (3+(2+(0+1)))[0] and (3+(2+(0+1)))[0]
}

func Example_radixIsTimed() {
	m := sim.InfiniBandNDR
	m.NodeRanks = 1
	for _, bytes := range []int64{64, 1 << 10, 16 << 10, 256 << 10} {
		fmt.Printf("%6d bytes:", bytes)
		for _, s := range []sched.Schedule{radix(64, 4), direct.RecursiveDoubling{N: 64}, direct.OneShot{N: 64}} {
			r, err := sim.Run(context.Background(), s, m, bytes, sim.Options{})
			if err != nil {
				fmt.Println(err)
			}
			fmt.Printf(" %6.1f µs", r.Time*1e6)
		}
		fmt.Println()
	}
	// Output:
	//     64 bytes:    7.7 µs   10.2 µs   26.7 µs
	//   1024 bytes:    8.2 µs   10.5 µs   28.3 µs
	//  16384 bytes:   17.3 µs   14.7 µs   62.8 µs
	// 262144 bytes:  197.9 µs   49.9 µs  802.9 µs
}

func Example_whichRadix() {
	m := sim.InfiniBandNDR
	m.NodeRanks = 1
	for _, k := range []int{2, 4, 8, 64} {
		s := radix(64, k)
		r, err := sim.Run(context.Background(), s, m, 64, sim.Options{})
		cost, _ := sched.CostOf(s, 2)
		fmt.Printf("radix %2d: %d hops, %2d messages of a rank, %4.1f µs %v\n", k, cost.Hops, cost.Sent, r.Time*1e6, err)
	}
	// Output:
	// radix  2: 6 hops,  6 messages of a rank, 10.2 µs <nil>
	// radix  4: 3 hops,  9 messages of a rank,  7.7 µs <nil>
	// radix  8: 2 hops, 14 messages of a rank,  8.3 µs <nil>
	// radix 64: 1 hops, 63 messages of a rank, 26.7 µs <nil>
}

// DefineRadix makes it an algorithm of this program.
func defineRadix() error {
	return ringo.Define(ringo.Definition{
		Name: "radix4", Kind: ringo.KindAllReduce,
		Schedule: func(n int, _ sched.Rank) sched.Schedule { return radix(n, 4) },
		Ranks:    func(n int) bool { return n == 4 || n == 16 || n == 64 || n == 256 },
	})
}

func Example_radixRuns() {
	comms, err := ringo.OpenLocal(4, ringo.Config{Algo: "radix4"}) // four goroutine ranks
	if err != nil {
		fmt.Println(err)
		return
	}
	sums := make([]float32, 4)
	var ranks sync.WaitGroup
	for rank, c := range comms {
		ranks.Go(func() {
			defer c.Close()
			data := []float32{float32(1 + rank)}
			if err := ringo.AllReduce(c, data, ringo.Sum); err != nil {
				fmt.Println(err)
			}
			sums[rank] = data[0]
		})
	}
	ranks.Wait()
	fmt.Println(sums)
	// Output:
	// [10 10 10 10]
}
