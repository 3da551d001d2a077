package sim

import (
	"fmt"

	"github.com/ringo-go/ringo/sched"
)

// A world is a run under way. A rank is carried on until it must wait; who
// makes it ready puts it into the line. The order of ranks in the line does not
// matter, because every time is computed from the times of what it depends on.
// Only ports that ranks share serve who comes first: a rank that wants one waits
// in turns, and the earliest goes on when nobody else can.
type world struct {
	s     sched.Schedule
	m     Model
	ranks []rank
	queues
	line  line
	turns turns

	buses, cardsOut, cardsIn []port // by node, of links that are shared

	rounds  int32
	pieces  [2]piece        // of full length, and of the last round
	skipped float64         // rounds that are not carried out
	depth   uint32          // pieces that fit into a queue
	ends    []float64       // when the last rank ends each round
	sent    [2][kinds]int64 // messages of either length over each kind of link
	wrong   error
}

// A rank is 64 bytes and two 4-byte places in lines; nothing else of a run
// grows with the ranks but their queues.
type rank struct {
	clock    float64 // when its core is free
	out      float64 // when its port out is free
	in       port
	step     int32
	steps    int32
	round    int32
	sendTo   int32 // queue it sent to last, likely the next too; -1 for none
	recvFrom int32 // the same for receiving
	waits    int32 // queue it waits for, or one of the below
}

const (
	ready  = -1
	inTurn = -2
	ended  = -3
)

// A piece is what a message costs by its length alone.
type piece struct {
	bytes  float64
	slices float64
	link   [kinds]cost
	reduce float64 // of a slice
	copy   float64
}

type cost struct {
	Link
	slice, all             float64 // of the port
	sharedSlice, sharedAll float64
}

func (m *Model) newPiece(bytes int64) piece {
	p := piece{bytes: float64(bytes), slices: 1}
	if n := (bytes + int64(m.SlotBytes) - 1) / int64(m.SlotBytes); n > 1 {
		p.slices = float64(n)
	}
	slice := p.bytes / p.slices
	p.reduce, p.copy = slice*m.Reduce, slice*m.Copy
	for k := range kinds {
		c := cost{Link: m.link(k)}
		if c.Bandwidth > 0 {
			c.slice, c.all = slice/c.Bandwidth, p.bytes/c.Bandwidth
		}
		if c.Shared > 0 {
			c.sharedSlice, c.sharedAll = slice/c.Shared, p.bytes/c.Shared
		}
		p.link[k] = c
	}
	return p
}

// run carries all ranks to their end.
func (w *world) run() error {
	for r := range w.ranks {
		w.line.push(int32(r))
	}
	for {
		for w.line.n > 0 && w.wrong == nil {
			w.carry(w.line.pop(), false)
		}
		if len(w.turns) == 0 || w.wrong != nil {
			break
		}
		w.carry(w.turns.pop().rank, true)
	}
	if w.wrong != nil {
		return w.wrong
	}
	return w.checkEnd()
}

// carry does steps of rank r until it must wait. granted says that it is the
// earliest of those that want a shared port.
func (w *world) carry(r int32, granted bool) {
	st := &w.ranks[r]
	st.waits = ready
	for {
		for st.step == st.steps {
			w.ends[st.round] = max(w.ends[st.round], st.end())
			st.step = 0
			st.round++
			if st.round == w.rounds {
				st.waits = ended
				return
			}
		}
		if !w.move(r, st, w.s.At(sched.Rank(r), int(st.step)), granted) {
			return
		}
		granted = false
		st.step++
	}
}

// end is when a rank and what it has sent are done.
func (st *rank) end() float64 { return max(st.clock, st.out) }

// move carries out one step, or changes nothing but what the rank waits for.
func (w *world) move(r int32, st *rank, step sched.Step, granted bool) bool {
	size := 0
	if st.round == w.rounds-1 {
		size = 1
	}
	p := &w.pieces[size]

	// What must be there before the step can begin.
	from, to := int32(-1), int32(-1)
	if step.Recv != sched.Nobody {
		from = st.recvFrom
		if from < 0 || w.list[from].src != int32(step.Recv) {
			if !w.valid(r, step.Recv) {
				return false
			}
			from = w.queue(int32(step.Recv), r)
			st.recvFrom = from
		}
		if q := &w.list[from]; q.sent == q.received {
			st.waits = from
			return false
		}
	}
	var credit span
	if step.Send != sched.Nobody {
		to = st.sendTo
		if to < 0 || w.list[to].dst != int32(step.Send) {
			if !w.valid(r, step.Send) {
				return false
			}
			to = w.queue(r, int32(step.Send))
			st.sendTo = to
		}
		q := &w.list[to]
		if q.sent-q.received >= w.depth {
			st.waits = to
			return false
		}
		if q.sent >= w.depth {
			credit = *w.span(to, q.sent-w.depth)
		}
	}

	// The core: its first slice is done at first, its last at last, and each one
	// between takes work.
	first, last, work := st.clock, 0.0, 0.0
	in := st.in
	var lin *cost
	if from >= 0 {
		lin = &p.link[w.list[from].kind]
		s := *w.span(from, w.list[from].received)
		if !lin.Busy {
			begin := in.serve(s.first-lin.slice, lin.all)
			s.first = begin + lin.slice
			s.last = max(s.last, begin+lin.all)
			in.free = max(in.free, s.last)
		}
		work = lin.Overhead
		switch {
		case step.Src.Buf != sched.None:
			work += p.reduce
		case step.Dst.Buf != sched.None:
			work += p.copy
		}
		first, last = max(first, s.first), s.last
	} else if step.Src.Buf != sched.None && step.Dst.Buf != sched.None {
		work = p.copy
	}

	if to < 0 {
		first += work
		last = max(last+work, first+(p.slices-1)*work)
	} else {
		k := w.list[to].kind
		lout := &p.link[k]
		work += lout.Overhead
		first = max(first+work, credit.first)
		last = max(last+work, credit.last)
		if lout.Busy {
			work += lout.slice
		}
		last = max(last, first+(p.slices-1)*work)

		// The port, from the first slice on.
		begin := first
		if !lout.Busy {
			begin = max(begin, st.out)
		}
		var arrive span
		arrive.first = begin + lout.slice
		arrive.last = max(begin+lout.all, last+lout.slice)
		if lout.Shared > 0 {
			if !granted {
				w.turns.push(turn{begin, r})
				st.waits = inTurn
				return false
			}
			w.share(&arrive, begin, k, lout, r, int32(step.Send))
		}
		if lout.Busy {
			first, last = arrive.first, arrive.last
		} else {
			st.out = arrive.last
		}
		arrive.first += lout.Latency
		arrive.last += lout.Latency
		w.put(to, arrive, w.depth)
		w.sent[size][k]++
		w.wake(int32(step.Send), to)
	}
	if from >= 0 {
		st.in = in
		q := &w.list[from]
		*w.span(from, q.received) = span{first + lin.Latency, last + lin.Latency}
		q.received++
		w.wake(int32(step.Recv), from)
	}
	st.clock = last
	return true
}

// queue finds a queue that the rank did not use last.
func (w *world) queue(src, dst int32) int32 {
	at := w.find(src, dst)
	w.list[at].kind = w.m.kindOf(src, dst)
	return at
}

// share puts a message on what ranks of a node have in common.
func (w *world) share(arrive *span, begin float64, k kind, c *cost, src, dst int32) {
	here, there := int(src)/w.m.NodeRanks, int(dst)/w.m.NodeRanks
	on := func(p *port) {
		begin = p.serve(begin, c.sharedAll)
		arrive.first = max(arrive.first, begin+c.sharedSlice)
		arrive.last = max(arrive.last, begin+c.sharedAll)
	}
	if k == intra {
		on(&w.buses[here])
		return
	}
	on(&w.cardsOut[here])
	on(&w.cardsIn[there])
}

// wake puts rank r into the line if it waits for queue q.
func (w *world) wake(r, q int32) {
	if st := &w.ranks[r]; st.waits == q {
		st.waits = ready
		w.line.push(r)
	}
}

// valid refuses a peer that does not exist.
func (w *world) valid(r int32, peer sched.Rank) bool {
	if peer >= 0 && int(peer) < len(w.ranks) {
		return true
	}
	w.wrong = fmt.Errorf("sim: step %d of rank %d names rank %d of %d", w.ranks[r].step, r, peer, len(w.ranks))
	return false
}
