package handbook_test

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/ringo-go/ringo/sched"
)

// A value is a chunk with the ranks whose contributions are in it.
type value struct {
	chunk int
	ranks uint64
}

// sole is the only rank of a value, or -1.
func (v value) sole() int {
	if bits.OnesCount64(v.ranks) != 1 {
		return -1
	}
	return bits.TrailingZeros64(v.ranks)
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

// A walked schedule is what happens when each message takes one hop and nothing else
// takes time: the time of sched.Cost.Hops.
type walked struct {
	ranks, chunks, hops int
	messages            []message
	handled             []handling
}

// walk has sched.Watch carry out a schedule, and prove it on the way.
func walk(name string, s sched.Schedule, goal sched.Goal) walked {
	shape := s.Shape()
	w := walked{ranks: shape.Ranks, chunks: max(shape.In, shape.Out)}
	clock := make([]int, shape.Ranks)
	comes := map[[2]sched.Rank][]int{} // when the messages of a queue come
	err := sched.Watch(s, goal, shape.Ranks+1, false, func(e sched.Event) {
		if e.Recv != sched.Nobody {
			queue := [2]sched.Rank{e.Recv, e.Rank}
			clock[e.Rank] = max(clock[e.Rank], comes[queue][0])
			comes[queue] = comes[queue][1:]
		}
		v := value{chunk: e.Value.Chunk()}
		for _, r := range e.Value.From() {
			v.ranks |= 1 << r
		}
		now := clock[e.Rank]
		w.handled = append(w.handled, handling{e.Rank, now, v})
		if e.Send == sched.Nobody {
			return
		}
		queue := [2]sched.Rank{e.Rank, e.Send}
		if e.Send == e.Rank {
			comes[queue] = append(comes[queue], now)
			return
		}
		comes[queue] = append(comes[queue], now+1)
		w.messages = append(w.messages, message{e.Rank, e.Send, now, v})
		w.hops = max(w.hops, now+1)
	})
	if err != nil {
		panic(name + ": " + err.Error())
	}
	// Pictures do not depend on the order in which Watch goes.
	slices.SortStableFunc(w.messages, func(a, b message) int {
		return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	return w
}

// walkOf walks a schedule of the handbook.
func walkOf(name string, n int) walked {
	k := schedules[name]
	return walk(name, k.build(n), k.goal)
}
