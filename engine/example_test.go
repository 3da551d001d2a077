package engine_test

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/inproc"
)

// node is one rank: its transport, and the addresses of all.
type node struct {
	rank int
	transport.Transport
	addrs [][]byte
}

func info(rank int) transport.Info {
	return transport.Info{Rank: rank, Host: "here", Process: "this one"}
}

func (n *node) Send(to sched.Rank) (transport.SendConn, error) {
	return n.Dial(info(int(to)), n.addrs[to])
}

func (n *node) Recv(from sched.Rank) (transport.RecvConn, error) { return n.Accept(info(int(from))) }

// Three ranks sum their vectors along a ring.
func Example() {
	const ranks, count = 3, 4
	limits := transport.Limits{SlotBytes: 4096, Slots: 4}
	schedule := ring.AllReduce{N: ranks}
	sum, err := kernels.NewReducer(kernels.Int32, kernels.Sum, ranks)
	if err != nil {
		panic(err)
	}

	nodes := make([]*node, ranks)
	addrs := make([][]byte, ranks)
	for r := range nodes {
		nodes[r] = &node{r, inproc.New(transport.Config{Self: info(r), Limits: limits}), addrs}
		if addrs[r], err = nodes[r].Listen(); err != nil {
			panic(err)
		}
		defer nodes[r].Close()
	}

	results := make([][]byte, ranks)
	var all sync.WaitGroup
	for r, n := range nodes {
		all.Go(func() {
			program, err := engine.Compile(schedule, sched.Rank(r), n)
			if err != nil {
				panic(err)
			}
			in, out := make([]byte, 4*count), make([]byte, 4*count)
			for i := range count {
				binary.NativeEndian.PutUint32(in[4*i:], uint32(10*r+i))
			}
			chunks := engine.Even(len(in), schedule.Shape().In, sum.Unit())
			err = engine.New(limits).Run(&engine.Job{
				Program: program, In: in, Out: out, InL: chunks, OutL: chunks, Reducer: sum,
			})
			if err != nil {
				panic(err)
			}
			results[r] = out
		})
	}
	all.Wait()
	for r, out := range results {
		fmt.Print("rank ", r, ":")
		for i := range count {
			fmt.Print(" ", binary.NativeEndian.Uint32(out[4*i:]))
		}
		fmt.Println()
	}
	// Output:
	// rank 0: 30 33 36 39
	// rank 1: 30 33 36 39
	// rank 2: 30 33 36 39
}

// Six elements of two bytes in chunks for four ranks: the last chunk is empty.
func ExampleEven() {
	chunks := engine.Even(12, 4, 2)
	for c := range 4 {
		fmt.Println(chunks.Extent(c))
	}
	// Output:
	// 0 4
	// 4 4
	// 8 4
	// 12 0
}
