package handbook_test

import (
	"fmt"
	"math/bits"

	"github.com/ringo-go/ringo/sched"
)

// A value is a chunk with the ranks whose contributions are in it.
type value struct {
	chunk int
	ranks uint64
}

// A message is a value on its way. It leaves at a time, counted in hops, and has come one later.
type message struct {
	from, to sched.Rank
	left     int
	value    value
}

// A handling is a value in a rank's hands: it has made or received it.
type handling struct {
	rank  sched.Rank
	time  int
	value value
}

// A walked schedule is what happens when a schedule is carried out and each message takes one
// hop and nothing else takes time: the time of sched.Cost.Hops.
type walked struct {
	ranks, chunks, hops int
	messages            []message
	handled             []handling
}

// walk carries out a schedule on names of contributions. Queues hold depth messages.
func walk(s sched.Schedule, depth int) walked {
	shape := s.Shape()
	n := shape.Ranks
	h := walked{ranks: n, chunks: max(shape.In, shape.Out)}
	type place struct {
		rank sched.Rank
		ref  sched.Ref
	}
	memory := map[place]value{}
	load := func(r sched.Rank, ref sched.Ref) value {
		if ref.Buf == sched.In {
			return value{int(ref.Chunk), 1 << r}
		}
		return memory[place{r, ref}]
	}
	queues := map[[2]sched.Rank][]message{}
	next, clock := make([]int, n), make([]int, n)
	for moved := true; moved; {
		moved = false
		for r := range sched.Rank(n) {
			for next[r] < s.Len(r) {
				step := s.At(r, next[r])
				in, out := [2]sched.Rank{step.Recv, r}, [2]sched.Rank{r, step.Send}
				if step.Recv != sched.Nobody && len(queues[in]) == 0 || step.Send != sched.Nobody && len(queues[out]) >= depth {
					break
				}
				var v value
				if step.Recv != sched.Nobody {
					m := queues[in][0]
					queues[in] = queues[in][1:]
					v = m.value
					if m.from != m.to {
						clock[r] = max(clock[r], m.left+1)
					}
				}
				if step.Src.Buf != sched.None {
					own := load(r, step.Src)
					v = value{own.chunk, own.ranks | v.ranks}
				}
				if step.Dst.Buf != sched.None {
					memory[place{r, step.Dst}] = v
				}
				h.handled = append(h.handled, handling{r, clock[r], v})
				if step.Send != sched.Nobody {
					m := message{r, step.Send, clock[r], v}
					queues[out] = append(queues[out], m)
					if r != step.Send {
						h.messages = append(h.messages, m)
						h.hops = max(h.hops, m.left+1)
					}
				}
				next[r]++
				moved = true
			}
		}
	}
	for r := range n {
		if next[r] < s.Len(sched.Rank(r)) {
			panic(fmt.Sprintf("rank %d stands at step %d", r, next[r]))
		}
	}
	return h
}

// sole is the only rank of a value, or -1.
func (v value) sole() int {
	if bits.OnesCount64(v.ranks) != 1 {
		return -1
	}
	return bits.TrailingZeros64(v.ranks)
}
