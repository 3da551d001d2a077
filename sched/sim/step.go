package sim

import "github.com/ringo-go/ringo/sched"

// move carries out one step, or notes what the rank waits for and changes nothing else.
func (w *world) move(r int32, st *rank, step sched.Step, granted bool) bool {
	size := 0
	if st.round == w.rounds-1 {
		size = 1
	}
	from, ok := w.message(r, st, step.Recv)
	if !ok {
		return false
	}
	to, credit, ok := w.credit(r, st, step.Send)
	if !ok {
		return false
	}
	p := &w.pieces[size]
	f, in := w.receive(st, from, p, step)
	came := f.first
	if w.waited = 0; to < 0 {
		f.first += f.work
		f.last = max(f.last+f.work, f.first+float64((p.slices-1)*f.work))
	} else if !w.send(r, st, to, credit, size, &f, granted) {
		return false
	}
	if from >= 0 { // its slots are free again
		st.in = in
		q := &w.list[from]
		back := p.link[q.kind].Latency
		*w.arrival(from, q.received) = arrival{f.first + back, f.last + back}
		q.received++
		w.wake(int32(step.Recv), from)
	}
	if w.see != nil {
		w.see(Timed{sched.Rank(r), int(st.round), int(st.step), st.clock, f.last, came - st.clock, w.waited})
	}
	st.clock = f.last
	return true
}

// message finds the queue from a peer, -1 for none. If it is empty the rank waits
// for it and ok is false.
func (w *world) message(r int32, st *rank, peer sched.Rank) (from int32, ok bool) {
	if peer == sched.Nobody {
		return -1, true
	}
	if !w.valid(r, peer) {
		return -1, false
	}
	src, dst := w.sym.fold(int32(peer), r)
	from = st.recvFrom
	if from < 0 || w.list[from].src != src || w.list[from].dst != dst {
		from = w.queue(src, dst)
		st.recvFrom = from
	}
	if q := &w.list[from]; q.sent == q.received {
		st.waits = from
		return from, false
	}
	return from, true
}

// credit finds the queue to a peer, -1 for none, and when the slots that the next
// message takes are free. If it is full the rank waits for it and ok is false.
func (w *world) credit(r int32, st *rank, peer sched.Rank) (to int32, credit arrival, ok bool) {
	if peer == sched.Nobody {
		return -1, arrival{}, true
	}
	to = st.sendTo
	if to < 0 || w.list[to].dst != int32(peer) {
		if !w.valid(r, peer) {
			return -1, arrival{}, false
		}
		to = w.queue(r, int32(peer))
		st.sendTo = to
	}
	q := &w.list[to]
	if q.sent-q.received >= w.depth {
		st.waits = to
		return to, arrival{}, false
	}
	if q.sent >= w.depth {
		credit = *w.arrival(to, q.sent-w.depth)
	}
	return to, credit, true
}

// A flow is the slices of one step as they pass through the core: when the first
// and the last are ready, and how long the core works at each.
type flow struct{ first, last, work float64 }

// receive is the flow of a message from a queue, or of the rank's own chunk, up
// to where the core begins to work at it. in is the port after that.
func (w *world) receive(st *rank, from int32, p *piece, step sched.Step) (f flow, in port) {
	f.first, in = st.clock, st.in
	if from < 0 {
		if step.Src.Buf != sched.None && step.Dst.Buf != sched.None {
			f.work = p.copy
		}
		return f, in
	}
	q := &w.list[from]
	l := &p.link[q.kind]
	s := *w.arrival(from, q.received)
	if !l.Busy {
		begin := in.serve(s.first-l.slice, l.all)
		s.first = begin + l.slice
		s.last = max(s.last, begin+l.all)
		in.free = max(in.free, s.last)
	}
	f.work = l.Overhead
	switch {
	case step.Src.Buf != sched.None:
		f.work += p.reduce
	case step.Dst.Buf != sched.None:
		f.work += p.copy
	}
	f.first, f.last = max(f.first, s.first), s.last
	return f, in
}

// send puts a flow into a queue, through the rank's port and what it shares with
// others. It returns false if the rank must wait for the port.
func (w *world) send(r int32, st *rank, to int32, credit arrival, size int, f *flow, granted bool) bool {
	k, dst := w.list[to].kind, w.list[to].dst
	p := &w.pieces[size]
	l := &p.link[k]
	f.work += l.Overhead
	w.waited = max(0, credit.first-(f.first+f.work))
	f.first = max(f.first+f.work, credit.first)
	f.last = max(f.last+f.work, credit.last)
	if l.Busy {
		f.work += l.slice
	}
	f.last = max(f.last, f.first+float64((p.slices-1)*f.work))

	begin := f.first
	if !l.Busy {
		begin = max(begin, st.out)
	}
	arrive := arrival{first: begin + l.slice, last: max(begin+l.all, f.last+l.slice)}
	if l.Shared > 0 {
		if !granted {
			w.requests.push(request{begin, r})
			st.waits = inTurn
			return false
		}
		w.share(&arrive, begin, k, l, r, dst)
	}
	if l.Busy {
		f.first, f.last = arrive.first, arrive.last
	} else {
		st.out = arrive.last
	}
	arrive.first += l.Latency
	arrive.last += l.Latency
	w.put(to, arrive, w.depth)
	w.sent[size][k]++
	w.wake(dst, to)
	return true
}

// share puts a message on the resource that ranks of a node share.
func (w *world) share(arrive *arrival, begin float64, k kind, c *cost, src, dst int32) {
	here, there := w.node(src), w.node(dst)
	if w.sym.rotation != fixed { // one node stands for all
		here, there = 0, 0
	}
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
