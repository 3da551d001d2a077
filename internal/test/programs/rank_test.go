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

// begin makes the streams and the memory to fill from.
func (k *rank) begin() error {
	k.comms, k.graphs, k.fills, k.pattern = map[int]member{}, map[int]*captured{}, map[filled]mem.Region{},
		map[kernels.DataType]mem.Region{}
	k.streams[Legacy], k.streams[Thread] = gpu.Legacy, gpu.PerThread
	for s := Own; s <= Blocking; s++ {
		if err := k.newStream(s); err != nil {
			return err
		}
	}
	for s := range k.events {
		var err error
		if k.events[s], err = k.d.NewEvent(); err != nil {
			return err
		}
	}
	for i := range k.run.p.Steps {
		s := &k.run.p.Steps[i]
		for _, c := range append(s.Calls, *s) {
			if _, ok := k.pattern[c.Type]; c.Fill > 0 && !ok {
				r, err := k.allocWith(k.d.Alloc, pattern(k.run.p, k.number, c.Type))
				if err != nil {
					return err
				}
				k.pattern[c.Type] = r
			}
		}
	}
	return nil
}

func (k *rank) newStream(s Stream) (err error) {
	if s != Blocking {
		k.streams[s], err = k.d.NewStream()
		return err
	}
	return k.d.With(func() error {
		k.streams[s], err = k.driver.StreamCreate(0, 0)
		return err
	})
}

// end gives everything back.
func (k *rank) end() error {
	var errs []error
	for n := range k.graphs {
		errs = append(errs, k.destroy(n))
	}
	errs = append(errs, k.settle())
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
func (k *rank) settle() error {
	return k.d.With(func() error {
		for _, e := range k.ended {
			if err := errors.Join(k.driver.EventSynchronize(e), k.driver.EventDestroy(e)); err != nil {
				return err
			}
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
	err := k.do(i, s, e, g)
	if err != nil {
		err = fmt.Errorf("device %d: %w", k.number, err)
	}
	return k.run.p.at(i, err)
}

// do does a step of streams, graphs or a communicator.
func (k *rank) do(i int, s *Step, e *expectation, g *ringo.Group) error {
	stream, driver := k.streams[s.Stream], k.driver
	switch s.Do {
	case Open, Split:
		return k.join(i, s)
	case Sync:
		return k.d.Synchronize(stream)
	case Renew:
		return k.renew(s.Stream)
	case Call, Message:
		return k.calls(s, e)
	case Group:
		return k.group(s, e, g)
	case Begin:
		mode := map[string]cuda.CaptureMode{"global": cuda.CaptureGlobal, "relaxed": cuda.CaptureRelaxed,
			"": cuda.CaptureThreadLocal}[s.Mode]
		return k.d.With(func() error { return driver.StreamBeginCapture(stream, mode) })
	case Fork:
		return k.d.With(func() error { return cuda.After(driver, k.streams[s.To], stream, k.events[s.To]) })
	case Join:
		return k.d.With(func() error { return cuda.After(driver, stream, k.streams[s.To], k.events[s.To]) })
	case End:
		return k.endCapture(s)
	case Launch:
		return k.d.With(func() error { return driver.GraphLaunch(k.graphs[s.Graph].exec, stream) })
	case Update:
		return k.update(s)
	case Destroy:
		return k.destroy(s.Graph)
	}
	return k.member(i, s, e)
}

// renew destroys a stream, which may have work, and makes it again.
func (k *rank) renew(s Stream) error {
	e, err := k.d.NewEvent()
	if err != nil {
		return err
	}
	k.ended = append(k.ended, e)
	if err := errors.Join(k.d.Record(e, k.streams[s]), k.d.DestroyStream(k.streams[s])); err != nil {
		return err
	}
	k.renewed[s]++
	return k.newStream(s)
}

// member does a step of a communicator, if this rank is a member.
func (k *rank) member(i int, s *Step, e *expectation) (err error) {
	m := k.comms[s.Comm]
	if (s.Do == Abort || s.Do == Meet) && !k.run.meet(i) { // so that no rank is at a step before it
		return nil
	}
	if m.c == nil || s.Do == Meet {
		return nil
	}
	switch s.Do {
	case Register:
		m.windows[s.In], err = m.c.Register(m.memory[s.In])
	case Unregister:
		err = m.windows[s.In].Close()
	case Check:
		return k.check(m, e)
	case Bad:
		if m.c.Rank() == s.Rank {
			err = m.c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: m.memory[0], Out: m.memory[0], Count: -1, Type: ringo.Int32,
				Stream: k.streams[s.Stream]})
			if !errors.Is(err, ringo.ErrInvalid) {
				return fmt.Errorf("want ErrInvalid, got %v", err)
			}
			err = nil
		}
	case Abort:
		if m.aborted = true; m.c.Rank() == s.Rank {
			m.c.Abort(errors.New("the program says so"))
		}
	case Close:
		if err = m.c.Close(); m.aborted {
			err = nil
		}
	}
	k.comms[s.Comm] = m
	return err
}

// join becomes a member of communicators.
func (k *rank) join(i int, s *Step) error {
	numbers := map[int]bool{s.Comm: true}
	var m member
	if s.Do == Open {
		comms, err := k.run.openAll(i, s)
		if err != nil {
			return err
		}
		m = member{c: comms[k.number], algo: s.Algo}
	} else {
		parent := k.comms[s.Parent]
		if parent.c == nil {
			return nil
		}
		color, key := ringo.NoColor, 0
		for p, part := range s.Members {
			numbers[s.Comm+p] = true
			if at := slices.Index(part, parent.c.Rank()); at >= 0 {
				color, key = p, at
			}
		}
		c, err := parent.c.Split(context.Background(), color, key)
		if err != nil {
			return err
		}
		if c == nil {
			return nil
		}
		k.run.keep(c)
		m = member{c: c, algo: parent.algo}
		numbers = map[int]bool{s.Comm + color: true}
	}
	for n := range numbers {
		for b := range m.memory {
			var err error
			alloc := k.d.Alloc
			if b%2 == 0 { // windows there may be used by copy engines
				alloc = k.d.AllocMapped
			}
			if m.memory[b], err = k.allocWith(alloc, contents(k.run.p, n, m.c.Rank(), b)); err != nil {
				return err
			}
		}
		k.comms[n] = m
	}
	return nil
}

// calls makes a rank's calls of a collective or a message.
func (k *rank) calls(s *Step, e *expectation) error {
	m := k.comms[s.Comm]
	if m.c == nil {
		return nil
	}
	list, err := k.callsOf(s, e, 0)
	for _, c := range list {
		err = errors.Join(err, allow(m.c.Do(c), e.state, m.aborted))
	}
	return err
}

// group makes calls together, or leaves them in a group.
func (k *rank) group(s *Step, e *expectation, all *ringo.Group) error {
	g := all
	if g == nil {
		g = ringo.NewGroup()
	}
	for i := range s.Calls {
		list, err := k.callsOf(&s.Calls[i], e, i)
		if err != nil {
			return err
		}
		for _, c := range list {
			g.Add(k.comms[s.Calls[i].Comm].c, c)
		}
	}
	if all != nil {
		return nil
	}
	return g.Run()
}

// callsOf are the calls that this rank makes for a collective or a message, which may be one
// of a group's.
func (k *rank) callsOf(s *Step, e *expectation, number int) (list []*ringo.Call, err error) {
	m := k.comms[s.Comm]
	if m.c == nil {
		return nil, nil
	}
	list, err = s.calls(m, func(in extent) (mem.Region, error) { return k.fill(s, e, number, in) })
	for _, c := range list {
		c.Stream = k.streams[s.Stream]
	}
	return list, err
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
func (k *rank) fill(s *Step, e *expectation, number int, in extent) (r mem.Region, err error) {
	key := filled{-1, s.Stream, k.renewed[s.Stream], number}
	if e.taken {
		key.graph = e.graph
	}
	r, ok := k.fills[key]
	if !ok {
		if r, err = k.d.Alloc(k.run.p.Bytes); err != nil { // not written here, for a stream may be captured
			return r, err
		}
		k.regions, k.fills[key] = append(k.regions, r), r
	}
	size := s.Type.Size()
	r = r.Slice(0, in.n*size)
	from := k.pattern[s.Type].Slice((s.Fill+in.at)*size, in.n*size)
	return r, k.d.With(func() error { return k.driver.MemcpyAsync(r.Ptr(), from.Ptr(), r.Len(), k.streams[s.Stream]) })
}

// endCapture makes a graph of a capture, or discards it.
func (k *rank) endCapture(s *Step) error {
	return k.d.With(func() error {
		g, err := k.driver.StreamEndCapture(k.streams[s.Stream])
		if err != nil {
			return err
		}
		if s.Discard {
			return k.driver.GraphDestroy(g)
		}
		ctx, err := k.d.Context()
		if err != nil {
			return err
		}
		return cuda.Quietly(k.driver, ctx, func() error { // other ranks may be capturing
			x, err := k.driver.GraphInstantiate(g, 0)
			k.graphs[s.Graph] = &captured{g, x}
			return err
		})
	})
}

// destroy destroys a graph, which may be running.
func (k *rank) destroy(number int) error {
	g := k.graphs[number]
	delete(k.graphs, number)
	return k.d.With(func() error {
		if number%2 == 0 {
			return errors.Join(k.driver.GraphExecDestroy(g.exec), k.driver.GraphDestroy(g.graph))
		}
		return errors.Join(k.driver.GraphDestroy(g.graph), k.driver.GraphExecDestroy(g.exec))
	})
}

// update makes a graph like another, which is destroyed.
func (k *rank) update(s *Step) error {
	g, from := k.graphs[s.Graph], k.graphs[s.Parent]
	return k.d.With(func() error {
		_, err := k.driver.GraphExecUpdate(g.exec, from.graph)
		if errors.Is(err, cuda.ErrGraphExecUpdateFailure) && s.How != "alike" { // its nodes differ: the other takes its place
			g.exec, from.exec = from.exec, g.exec
		} else if err != nil {
			return err
		}
		g.graph, from.graph = from.graph, g.graph
		return k.destroy(s.Parent)
	})
}

// check compares a communicator's buffers with the model's.
func (k *rank) check(m member, e *expectation) error {
	if err := k.settle(); err != nil {
		return err
	}
	if err := m.c.Synchronize(k.streams[Own]); err != nil && e.state == alive {
		return err
	}
	got := make([]byte, k.run.p.Bytes)
	for b, want := range e.memory[m.c.Rank()] {
		if err := k.d.Read(got, m.memory[b]); err != nil {
			return err
		}
		if i := want.differs(got); i >= 0 {
			return fmt.Errorf("buffer %d of rank %d: byte %d is %#x, want %#x (from there %x, want %x)",
				b, m.c.Rank(), i, got[i], want.data[i], got[i:min(i+16, len(got))], want.data[i:min(i+16, len(got))])
		}
	}
	return nil
}
