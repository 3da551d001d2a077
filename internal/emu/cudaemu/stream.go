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
func (c *call) stream(h cuda.Stream) (*stream, error) {
	if h <= cuda.StreamPerThread {
		if err := c.healthy(c.ctx); err != nil {
			return nil, err
		}
	}
	switch h {
	case 0, cuda.StreamLegacy:
		return c.ctx.legacy, nil
	case cuda.StreamPerThread:
		s := c.ctx.perThread[c.th.id]
		if s == nil {
			s = c.ctx.newStream(cuda.StreamPerThread, cuda.StreamDefault, 0)
			c.ctx.perThread[c.th.id] = s
		}
		return s, nil
	}
	s := c.streams[h]
	if s == nil {
		return nil, c.fail(cuda.ErrInvalidHandle, "%#x is no stream, or was destroyed", uintptr(h))
	}
	return s, c.healthy(s.ctx)
}

// onStream begins a call about a stream.
func (m *Machine) onStream(name string, h cuda.Stream) (*call, *stream, error) {
	c, err := m.begin(name)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.stream(h)
	if err != nil {
		c.end()
		return nil, nil, err
	}
	return c, s, nil
}

// enqueue puts work on the stream, or into the graph that it captures. The op
// is nil then.
func (c *call) enqueue(s *stream, w work) (*op, error) {
	if s.capture != nil {
		return nil, c.record(s, w)
	}
	if err := c.implicit(s); err != nil {
		return nil, err
	}
	return c.push(s, w), nil
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

// synchronize waits for the work that is on streams now.
func (c *call) synchronize(ctx *context, streams []*stream) error {
	var ops []*op
	for _, s := range streams {
		if s.last != nil {
			ops = append(ops, s.last)
		}
	}
	return c.waitFor(ctx, ops)
}

// idle waits for all work of a context. It orders nothing for the host.
func (c *call) idle(ctx *context) error {
	var ops []*op
	for _, s := range ctx.streams {
		ops = append(ops, s.last)
	}
	return c.await(ctx, func() bool { return allDone(ops) })
}

func (c *call) waitFor(ctx *context, ops []*op) error {
	err := c.await(ctx, func() bool { return allDone(ops) })
	c.saw(ops...)
	return err
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

func (m *Machine) StreamCreate(flags cuda.StreamFlags, priority int) (cuda.Stream, error) {
	c, err := m.beginIn("cuStreamCreateWithPriority")
	if err != nil {
		return 0, err
	}
	defer c.end()
	if flags&^cuda.StreamNonBlocking != 0 {
		return 0, c.fail(cuda.ErrInvalidValue, "flags %#x", flags)
	}
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
func (m *Machine) StreamDestroy(h cuda.Stream) error {
	c, s, err := m.onStream("cuStreamDestroy", h)
	if err != nil {
		return err
	}
	defer c.end()
	if !s.isUser() {
		return c.fail(cuda.ErrInvalidHandle, "the default streams cannot be destroyed")
	}
	if p := s.capture; p != nil && p.origin == s {
		m.dropCapture(p)
	}
	m.forgetStream(s)
	return nil
}

func (m *Machine) StreamSynchronize(h cuda.Stream) error {
	c, s, err := m.onStream("cuStreamSynchronize", h)
	if err != nil {
		return err
	}
	defer c.end()
	if err := c.mayWait(s); err != nil {
		return err
	}
	before := []*op{s.last}
	if s.isLegacy() {
		before = s.before()
	}
	return c.waitFor(s.ctx, before)
}

func (m *Machine) StreamQuery(h cuda.Stream) (bool, error) {
	c, s, err := m.onStream("cuStreamQuery", h)
	if err != nil {
		return false, err
	}
	defer c.end()
	if err := c.mayWait(s); err != nil {
		return false, err
	}
	deps := []*op{s.last}
	if s.isLegacy() {
		deps = s.before()
	}
	if m.exec.poke(); !allDone(deps) {
		return false, c.healthy(s.ctx)
	}
	c.saw(deps...)
	return true, c.healthy(s.ctx)
}

// mayWait fails if the stream, or the thread, is capturing.
func (c *call) mayWait(s *stream) error {
	if s.capture != nil {
		return c.violate([]*capture{s.capture}, cuda.ErrStreamCaptureUnsupported, "the stream is capturing")
	}
	if err := c.implicit(s); err != nil {
		return err
	}
	return c.unsafe()
}

func (m *Machine) StreamGetCtx(h cuda.Stream) (cuda.Context, error) {
	c, s, err := m.onStream("cuStreamGetCtx", h)
	if err != nil {
		return 0, err
	}
	defer c.end()
	return s.ctx.handle, nil
}

func (m *Machine) StreamGetFlags(h cuda.Stream) (cuda.StreamFlags, error) {
	c, s, err := m.onStream("cuStreamGetFlags", h)
	if err != nil {
		return 0, err
	}
	defer c.end()
	return s.flags, nil
}

func (m *Machine) StreamGetPriority(h cuda.Stream) (int, error) {
	c, s, err := m.onStream("cuStreamGetPriority", h)
	if err != nil {
		return 0, err
	}
	defer c.end()
	return s.priority, nil
}

func (m *Machine) StreamGetId(h cuda.Stream) (uint64, error) {
	c, s, err := m.onStream("cuStreamGetId", h)
	if err != nil {
		return 0, err
	}
	defer c.end()
	if s.capture != nil {
		return 0, c.violate([]*capture{s.capture}, cuda.ErrStreamCaptureUnsupported, "the stream is capturing")
	}
	return s.id, nil
}
