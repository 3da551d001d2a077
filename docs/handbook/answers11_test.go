package handbook_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/trace/judge"
)

func Example_space() {
	var consumed atomic.Uint64 // the device stores here what it is done with
	s := fifo.NewSpace(100, &consumed)
	var guard fifo.Guard
	guard.Begin(10 * time.Millisecond)

	launch := func(n int) (token uint64) {
		at, token, err := s.Reserve(n, &guard)
		if err != nil {
			fmt.Println("error:", err)
			return 0
		}
		fmt.Printf("%d bytes at %2d, token %3d\n", n, at, token)
		s.Commit(token)
		return token
	}
	first := launch(40)
	launch(40)
	consumed.Store(first) // the device has read the first
	launch(30)            // not at 80, where 20 bytes are left, but at the beginning
	launch(30)            // no room, and nobody makes any
	// Output:
	// 40 bytes at  0, token  40
	// 40 bytes at 40, token  80
	// 30 bytes at  0, token 130
	// error: work fifo full: no room for 30 bytes: produced 130, consumed 40, capacity 100: i/o timeout
}

func Example_blame() {
	in := func(rank int, number uint64, peer int) judge.State {
		return judge.State{Rank: rank, Heard: true, Last: number, At: number, Peer: peer}
	}
	say := func(states ...judge.State) {
		v := judge.Waits(states)
		fmt.Println(v.Reason, v.Culprits, "waiting:", v.Waiting)
	}
	idle := judge.State{Rank: 2, Heard: true, Last: 1041, Peer: -1}
	say(in(0, 1042, 3), in(1, 1042, 0), idle, in(3, 1042, 2))
	say(in(0, 1042, 3), in(1, 1042, 0), judge.State{Rank: 2, Peer: -1}, in(3, 1042, 2))
	// Output:
	// absent [2] waiting: [0 1 3]
	// silent [2] waiting: [0 1 3]
}

func Example_busbw() {
	const size, us, n = 1 << 30, 4410.0, 4
	for _, c := range bench.Collectives[:2] {
		alg := size / us / 1e3
		fmt.Printf("%s: algbw %.0f GB/s, busbw %.0f GB/s\n", c.Name, alg, alg*c.Bus(n))
	}
	// Output:
	// allreduce: algbw 243 GB/s, busbw 365 GB/s
	// allgather: algbw 243 GB/s, busbw 183 GB/s
}

func Example_order() {
	parts := []float32{1e8, 1, -1e8, 1}
	sum := func(order ...int) (s float32) {
		for _, r := range order {
			s += parts[r]
		}
		return s
	}
	fmt.Println("0 1 2 3:", sum(0, 1, 2, 3))
	fmt.Println("0 2 1 3:", sum(0, 2, 1, 3))
	// The orders in which a ring adds the four chunks: chunk c begins at rank c+1.
	for c := range 4 {
		s := ring.AllReduce{N: 4}
		var order []int
		for k := range s.N {
			order = append(order, (c+1+k)%s.N)
		}
		fmt.Println("chunk", c, "in order", order, "is", sum(order...))
	}
	// Output:
	// 0 1 2 3: 1
	// 0 2 1 3: 2
	// chunk 0 in order [1 2 3 0] is 0
	// chunk 1 in order [2 3 0 1] is 1
	// chunk 2 in order [3 0 1 2] is 0
	// chunk 3 in order [0 1 2 3] is 1
}

func Example_rounding() {
	r, err := kernels.NewReducer(kernels.BFloat16, kernels.Sum, 64)
	if err != nil {
		fmt.Println(err)
		return
	}
	part := binary.LittleEndian.AppendUint16(nil, uint16(math.Float32bits(3.7)>>16))
	value := func(b []byte) float32 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	}
	hops := append([]byte(nil), part...)
	var all [][]byte
	for i := range 64 {
		all = append(all, part)
		if i > 0 {
			r.Combine(hops, hops, part) // rounded at each hop
		}
	}
	once := make([]byte, 2)
	r.CombineAll(once, all, ^uint64(0), true) // added in float32, rounded at the end
	fmt.Println("exactly:", 64*value(part))
	fmt.Println("rounded at each hop:", value(hops))
	fmt.Println("rounded once:", value(once))
	// Output:
	// exactly: 236
	// rounded at each hop: 242
	// rounded once: 236
}
