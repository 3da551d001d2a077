package programs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A rank carries out the steps of one device.
type rank struct {
	store
	run    *run
	number int // of the device
	driver cuda.Driver
	at     atomic.Int64 // the step
	done   atomic.Int64 // how many steps are done, with repetitions

	streams [streams]gpu.Stream
	renewed [streams]int
	events  [streams]gpu.Event
	ended   []gpu.Event // the ends of streams that were destroyed
	comms   map[int]member
	graphs  map[int]*captured
	fills   map[filled]mem.Region
	pattern map[kernels.DataType]mem.Region
}

// A member is a rank of a communicator.
type member struct {
	c       *ringo.Comm // nil if this device is no member
	memory  [Buffers]mem.Region
	windows [Buffers]*ringo.Window
	algo    string
	aborted bool
}

// captured is a graph.
type captured struct {
	graph cuda.Graph
	exec  cuda.GraphExec
}

// filled names memory that is written before a collective reads it: each stream and each
// stream of a graph has its own, so that nothing but this stream orders it.
type filled struct {
	graph   int // -1 for none
	stream  Stream
	renewed int
	call    int // of a group, whose memory is all written before its calls
}

// A fault ends a rank's step.
type fault struct{ error }

// must is for calls that succeed in every program.
func must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(fault{err})
	}
}

// have is must for a call with a result.
func have[T any](x T, err error) T {
	must(err)
	return x
}

// caught is the fault of f, nil if there is none.
func caught(f func()) (err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case fault:
			err = x.error
		default:
			panic(x)
		}
	}()
	f()
	return nil
}

// with has the driver do something on the rank's device.
func (k *rank) with(f func() error) { must(k.d.With(f)) }

// begin makes the streams and the memory to fill from.
func (k *rank) begin() error {
	return caught(func() {
		k.comms, k.graphs, k.fills, k.pattern = map[int]member{}, map[int]*captured{}, map[filled]mem.Region{},
			map[kernels.DataType]mem.Region{}
		k.streams[Legacy], k.streams[Thread] = gpu.Legacy, gpu.PerThread
		for s := Own; s <= Blocking; s++ {
			k.newStream(s)
		}
		for s := range k.events {
			k.events[s] = have(k.d.NewEvent())
		}
		for i := range k.run.p.Steps {
			s := &k.run.p.Steps[i]
			for _, c := range append(s.Calls, *s) {
				if _, ok := k.pattern[c.Type]; c.Fill > 0 && !ok {
					k.pattern[c.Type] = have(k.allocWith(k.d.Alloc, pattern(k.run.p, k.number, c.Type)))
				}
			}
		}
	})
}

func (k *rank) newStream(s Stream) {
	if s != Blocking {
		k.streams[s] = have(k.d.NewStream())
		return
	}
	k.with(func() (err error) {
		k.streams[s], err = k.driver.StreamCreate(0, 0)
		return err
	})
}

// end gives everything back.
func (k *rank) end() error {
	var errs []error
	for n := range k.graphs {
		errs = append(errs, caught(func() { k.destroy(n) }))
	}
	errs = append(errs, caught(k.settle))
	for s, e := range k.events {
		errs = append(errs, k.d.DestroyEvent(e))
		if Stream(s) <= Blocking {
			errs = append(errs, k.d.DestroyStream(k.streams[s]))
		}
	}
	if err := errors.Join(append(errs, k.free())...); err != nil {
		return fmt.Errorf("at the end: device %d: %w", k.number, err)
	}
	return nil
}

// settle waits for all streams, those that were destroyed too.
func (k *rank) settle() {
	k.with(func() error {
		for _, e := range k.ended {
			must(k.driver.EventSynchronize(e), k.driver.EventDestroy(e))
		}
		k.ended = k.ended[:0]
		return k.driver.CtxSynchronize()
	})
}

// step does a step. The calls of a group are left in g, if that is not nil.
func (k *rank) step(i int, g *ringo.Group) error {
	k.at.Store(int64(i))
	defer k.done.Add(1)
	s, e := &k.run.p.Steps[i], &k.run.expect[i]
	if e.who != nil && !slices.Contains(e.who, k.number) {
		return nil
	}
	err := caught(func() { k.do(i, s, e, g) })
	if err != nil {
		err = fmt.Errorf("device %d: %w", k.number, err)
	}
	return k.run.p.at(i, err)
}

// do does a step of streams, graphs or a communicator.
func (k *rank) do(i int, s *Step, e *expectation, g *ringo.Group) {
	stream, driver := k.streams[s.Stream], k.driver
	switch s.Do {
	case Open, Split:
		k.join(i, s)
	case Sync:
		must(k.d.Synchronize(stream))
	case Renew:
		k.renew(s.Stream)
	case Call, Message:
		k.calls(s, e)
	case Group:
		k.group(s, e, g)
	case Begin:
		mode := map[string]cuda.CaptureMode{"global": cuda.CaptureGlobal, "relaxed": cuda.CaptureRelaxed,
			"": cuda.CaptureThreadLocal}[s.Mode]
		k.with(func() error { return driver.StreamBeginCapture(stream, mode) })
	case Fork:
		k.with(func() error { return cuda.After(driver, k.streams[s.To], stream, k.events[s.To]) })
	case Join:
		k.with(func() error { return cuda.After(driver, stream, k.streams[s.To], k.events[s.To]) })
	case End:
		k.endCapture(s)
	case Launch:
		k.with(func() error { return driver.GraphLaunch(k.graphs[s.Graph].exec, stream) })
	case Update:
		k.update(s)
	case Destroy:
		k.destroy(s.Graph)
	default:
		k.member(i, s, e)
	}
}

// renew destroys a stream, which may have work, and makes it again.
func (k *rank) renew(s Stream) {
	e := have(k.d.NewEvent())
	k.ended = append(k.ended, e)
	must(k.d.Record(e, k.streams[s]), k.d.DestroyStream(k.streams[s]))
	k.renewed[s]++
	k.newStream(s)
}

// member does a step of a communicator, if this rank is a member.
func (k *rank) member(i int, s *Step, e *expectation) {
	m := k.comms[s.Comm]
	if (s.Do == Abort || s.Do == Meet) && !k.run.meet(i) { // so that no rank is at a step before it
		return
	}
	if m.c == nil || s.Do == Meet {
		return
	}
	switch s.Do {
	case Register:
		m.windows[s.In] = have(m.c.Register(m.memory[s.In]))
	case Unregister:
		must(m.windows[s.In].Close())
	case Check:
		k.check(m, e)
	case Bad:
		if m.c.Rank() == s.Rank {
			err := m.c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: m.memory[0], Out: m.memory[0], Count: -1, Type: ringo.Int32,
				Stream: k.streams[s.Stream]})
			if !errors.Is(err, ringo.ErrInvalid) {
				must(fmt.Errorf("want ErrInvalid, got %v", err))
			}
		}
	case Abort:
		if m.aborted = true; m.c.Rank() == s.Rank {
			m.c.Abort(errors.New("the program says so"))
		}
	case Close:
		if err := m.c.Close(); !m.aborted {
			must(err)
		}
	}
	k.comms[s.Comm] = m
}

// join becomes a member of communicators.
func (k *rank) join(i int, s *Step) {
	number, m := s.Comm, member{algo: s.Algo}
	if s.Do == Open {
		m.c = have(k.run.openAll(i, s))[k.number]
	} else {
		parent := k.comms[s.Parent]
		if parent.c == nil {
			return
		}
		color, key := ringo.NoColor, 0
		for p, part := range s.Members {
			if at := slices.Index(part, parent.c.Rank()); at >= 0 {
				color, key = p, at
			}
		}
		m = member{c: have(parent.c.Split(context.Background(), color, key)), algo: parent.algo}
		if m.c == nil {
			return
		}
		k.run.keep(m.c)
		number += color
	}
	for b := range m.memory {
		alloc := k.d.Alloc
		if b%2 == 0 { // windows there may be used by copy engines
			alloc = k.d.AllocMapped
		}
		m.memory[b] = have(k.allocWith(alloc, contents(k.run.p, number, m.c.Rank(), b)))
	}
	k.comms[number] = m
}

// calls makes a rank's calls of a collective or a message.
func (k *rank) calls(s *Step, e *expectation) {
	m := k.comms[s.Comm]
	for _, c := range k.callsOf(s, e, 0) {
		must(allow(m.c.Do(c), e.state, m.aborted))
	}
}

// group makes calls together, or leaves them in a group.
func (k *rank) group(s *Step, e *expectation, all *ringo.Group) {
	g := all
	if g == nil {
		g = ringo.NewGroup()
	}
	for i := range s.Calls {
		for _, c := range k.callsOf(&s.Calls[i], e, i) {
			g.Add(k.comms[s.Calls[i].Comm].c, c)
		}
	}
	if all == nil {
		must(g.Run())
	}
}

// callsOf are the calls that this rank makes for a collective or a message, which may be one
// of a group's.
func (k *rank) callsOf(s *Step, e *expectation, number int) []*ringo.Call {
	m := k.comms[s.Comm]
	if m.c == nil {
		return nil
	}
	list := have(s.calls(m, func(in extent) (mem.Region, error) { return k.fill(s, e, number, in), nil }))
	for _, c := range list {
		c.Stream = k.streams[s.Stream]
	}
	return list
}

// calls are those of a rank for a collective or a message. fill gives memory with the step's pattern.
func (s *Step) calls(m member, fill func(extent) (mem.Region, error)) (list []*ringo.Call, err error) {
	r, n, size := m.c.Rank(), m.c.Size(), s.Type.Size()
	if s.Do == Message {
		if r == s.Sender {
			list = append(list, &ringo.Call{Kind: call.Send, Type: s.Type, Count: s.Count, Peer: s.Recver,
				In: m.memory[s.In].Slice(s.InAt*size, s.Count*size)})
		}
		if r == s.Recver {
			list = append(list, &ringo.Call{Kind: call.Recv, Type: s.Type, Count: s.Count, Peer: s.Sender,
				Out: m.memory[s.Out].Slice(s.OutAt*size, s.Count*size)})
		}
		return list, nil
	}
	c := s.call(r, n)
	if c.Kind == call.Barrier {
		c.In = m.memory[0].Slice(0, 0)
		return []*ringo.Call{&c}, nil
	}
	in, out := s.extents(r, n, m.algo == "window" || m.algo == "copies")
	c.In, c.Out = m.memory[s.In].Slice(in.at*size, in.n*size), m.memory[s.Out].Slice(out.at*size, out.n*size)
	if s.Fill > 0 && in.n > 0 {
		if c.In, err = fill(in); err != nil {
			return nil, err
		}
	}
	return []*ringo.Call{&c}, nil
}

// fill queues a copy into memory of the stream's own.
func (k *rank) fill(s *Step, e *expectation, number int, in extent) mem.Region {
	key := filled{-1, s.Stream, k.renewed[s.Stream], number}
	if e.taken {
		key.graph = e.graph
	}
	r, ok := k.fills[key]
	if !ok {
		r = have(k.d.Alloc(k.run.p.Bytes)) // not written here, for a stream may be captured
		k.regions, k.fills[key] = append(k.regions, r), r
	}
	size := s.Type.Size()
	r = r.Slice(0, in.n*size)
	from := k.pattern[s.Type].Slice((s.Fill+in.at)*size, in.n*size)
	k.with(func() error { return k.driver.MemcpyAsync(r.Ptr(), from.Ptr(), r.Len(), k.streams[s.Stream]) })
	return r
}

// endCapture makes a graph of a capture, or discards it.
func (k *rank) endCapture(s *Step) {
	k.with(func() error {
		g := have(k.driver.StreamEndCapture(k.streams[s.Stream]))
		if s.Discard {
			return k.driver.GraphDestroy(g)
		}
		return cuda.Quietly(k.driver, have(k.d.Context()), func() error { // other ranks may be capturing
			x, err := k.driver.GraphInstantiate(g, 0)
			k.graphs[s.Graph] = &captured{g, x}
			return err
		})
	})
}

// destroy destroys a graph, which may be running.
func (k *rank) destroy(number int) {
	g := k.graphs[number]
	delete(k.graphs, number)
	k.with(func() error {
		if number%2 == 0 {
			return errors.Join(k.driver.GraphExecDestroy(g.exec), k.driver.GraphDestroy(g.graph))
		}
		return errors.Join(k.driver.GraphDestroy(g.graph), k.driver.GraphExecDestroy(g.exec))
	})
}

// update makes a graph like another, which is destroyed.
func (k *rank) update(s *Step) {
	g, from := k.graphs[s.Graph], k.graphs[s.Parent]
	k.with(func() error {
		_, err := k.driver.GraphExecUpdate(g.exec, from.graph)
		if errors.Is(err, cuda.ErrGraphExecUpdateFailure) && s.How != "alike" { // its nodes differ: the other takes its place
			g.exec, from.exec = from.exec, g.exec
			err = nil
		}
		g.graph, from.graph = from.graph, g.graph
		return err
	})
	k.destroy(s.Parent)
}

// check compares a communicator's buffers with the model's.
func (k *rank) check(m member, e *expectation) {
	k.settle()
	if err := m.c.Synchronize(k.streams[Own]); e.state == alive {
		must(err)
	}
	got := make([]byte, k.run.p.Bytes)
	for b, want := range e.memory[m.c.Rank()] {
		must(k.d.Read(got, m.memory[b]))
		if i := want.differs(got); i >= 0 {
			must(fmt.Errorf("buffer %d of rank %d: byte %d is %#x, want %#x (from there %x, want %x)",
				b, m.c.Rank(), i, got[i], want.data[i], got[i:min(i+16, len(got))], want.data[i:min(i+16, len(got))]))
		}
	}
}
