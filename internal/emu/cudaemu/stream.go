package cudaemu

import (
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
)

// A stream is a queue: each op comes after the one before it. An op of the
// legacy default stream is also in order with the ops of the context's blocking
// streams.
type stream struct {
	handle    cuda.Stream
	id        uint64 // of no other stream
	ctx       *context
	flags     cuda.StreamFlags
	priority  int
	last      *op
	destroyed bool
	by        Caller

	capture *capture // nil unless it is capturing
	tail    []*node  // the nodes that the next node comes after
}

func (x *context) newStream(h cuda.Stream, flags cuda.StreamFlags, priority int) *stream {
	x.streams = slices.DeleteFunc(x.streams, func(s *stream) bool { return s.destroyed && (s.last == nil || s.last.done) })
	x.m.serial++
	s := &stream{handle: h, id: x.m.serial, ctx: x, flags: flags, priority: priority, by: x.m.caller(x.dev)}
	x.streams = append(x.streams, s)
	return s
}

func (s *stream) isLegacy() bool   { return s == s.ctx.legacy }
func (s *stream) isBlocking() bool { return s.flags&cuda.StreamNonBlocking == 0 }
func (s *stream) isUser() bool     { return s.handle > cuda.StreamPerThread }

// stream is the stream of a handle. The default ones are those of the current
// context, others need none to be current.
func (c *call) stream(h cuda.Stream) *stream {
	if h <= cuda.StreamPerThread {
		c.healthy(c.ctx)
	}
	switch h {
	case 0, cuda.StreamLegacy:
		return c.ctx.legacy
	case cuda.StreamPerThread:
		s := c.ctx.perThread[c.th.id]
		if s == nil {
			s = c.ctx.newStream(cuda.StreamPerThread, cuda.StreamDefault, 0)
			c.ctx.perThread[c.th.id] = s
		}
		return s
	}
	s := c.streams[h]
	c.refuse(s == nil, cuda.ErrInvalidHandle, "%#x is no stream, or was destroyed", uintptr(h))
	c.healthy(s.ctx)
	return s
}

// onStream begins a call about a stream.
func (c *call) onStream(h cuda.Stream) *stream {
	c.begin()
	return c.stream(h)
}

// enqueue puts work on the stream, or into the graph that it captures.
func (c *call) enqueue(s *stream, w work) {
	if s.capture != nil {
		c.record(s, w)
		return
	}
	c.implicit(s)
	c.push(s, w)
}

// push puts work on a stream that is not capturing.
func (m *Machine) push(s *stream, w work, more ...*op) *op {
	deps := append(more, s.before()...)
	s.last = m.submit(s.ctx, s.priority, w, deps...)
	return s.last
}

// before are the ops that the next op of the stream comes after.
func (s *stream) before() []*op {
	deps := []*op{s.last}
	switch {
	case s.isLegacy():
		for _, o := range s.ctx.streams {
			if o.isBlocking() && o != s {
				deps = append(deps, o.last)
			}
		}
	case s.isBlocking():
		deps = append(deps, s.ctx.legacy.last)
	}
	return deps
}

// work returns the last ops of the context's streams.
func (x *context) work() (ops []*op) {
	for _, s := range x.streams {
		ops = append(ops, s.last)
	}
	return ops
}

// waitFor waits until ops are done, and the host knows it then.
func (c *call) waitFor(ctx *context, ops []*op) {
	defer c.saw(ops...)
	c.await(ctx, func() bool { return allDone(ops) })
}

// saw notes that the host knows these ops to be done.
func (c *call) saw(ops ...*op) {
	for _, o := range ops {
		if o != nil && o.done {
			c.mem.HostSaw(o.clock)
			c.th.seen = max(c.th.seen, o.at)
		}
	}
}

func allDone(ops []*op) bool {
	for _, o := range ops {
		if o != nil && !o.done {
			return false
		}
	}
	return true
}

func (m *Machine) StreamCreate(flags cuda.StreamFlags, priority int) (_ cuda.Stream, err error) {
	c := m.call("cuStreamCreateWithPriority", &err)
	defer c.end()
	c.beginIn()
	c.refuse(flags&^cuda.StreamNonBlocking != 0, cuda.ErrInvalidValue, "flags %#x", flags)
	s := c.ctx.newStream(cuda.Stream(m.handles.give(streamHandle)), flags,
		min(leastPriority, max(greatestPriority, priority)))
	m.streams[s.handle] = s
	return s.handle, nil
}

// forgetStream takes the handle from a stream of the program.
func (m *Machine) forgetStream(s *stream) {
	s.destroyed = true
	delete(m.streams, s.handle)
	m.handles.back(streamHandle, uintptr(s.handle))
}

// StreamDestroy returns at once; the work on the stream still gets done. A
// capture that began on it is lost, one that it joined goes on.
func (m *Machine) StreamDestroy(h cuda.Stream) (err error) {
	c := m.call("cuStreamDestroy", &err)
	defer c.end()
	s := c.onStream(h)
	c.refuse(!s.isUser(), cuda.ErrInvalidHandle, "the default streams cannot be destroyed")
	if p := s.capture; p != nil && p.origin == s {
		m.dropCapture(p)
	}
	m.forgetStream(s)
	return nil
}

func (m *Machine) StreamSynchronize(h cuda.Stream) (err error) {
	c := m.call("cuStreamSynchronize", &err)
	defer c.end()
	s := c.onStream(h)
	c.mayWait(s)
	c.waitFor(s.ctx, s.queued())
	return nil
}

// queued are the ops that a wait for the stream waits for.
func (s *stream) queued() []*op {
	if s.isLegacy() {
		return s.before()
	}
	return []*op{s.last}
}

func (m *Machine) StreamQuery(h cuda.Stream) (_ bool, err error) {
	c := m.call("cuStreamQuery", &err)
	defer c.end()
	s := c.onStream(h)
	c.mayWait(s)
	ops := s.queued()
	m.exec.poke()
	done := allDone(ops)
	if done {
		c.saw(ops...)
	}
	c.healthy(s.ctx)
	return done, nil
}

// mayWait fails if the stream, or the thread, is capturing.
func (c *call) mayWait(s *stream) {
	c.uncaptured(s, "the stream is capturing")
	c.implicit(s)
	c.unsafe()
}

func (m *Machine) StreamGetCtx(h cuda.Stream) (cuda.Context, error) {
	return of(m, "cuStreamGetCtx", (*call).stream, h, func(_ *call, s *stream) cuda.Context { return s.ctx.handle })
}

func (m *Machine) StreamGetFlags(h cuda.Stream) (cuda.StreamFlags, error) {
	return of(m, "cuStreamGetFlags", (*call).stream, h, func(_ *call, s *stream) cuda.StreamFlags { return s.flags })
}

func (m *Machine) StreamGetPriority(h cuda.Stream) (int, error) {
	return of(m, "cuStreamGetPriority", (*call).stream, h, func(_ *call, s *stream) int { return s.priority })
}

func (m *Machine) StreamGetId(h cuda.Stream) (uint64, error) {
	return of(m, "cuStreamGetId", (*call).stream, h, func(c *call, s *stream) uint64 {
		c.uncaptured(s, "the stream is capturing")
		return s.id
	})
}
