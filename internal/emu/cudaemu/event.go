package cudaemu

import (
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/cuda"
)

// An event is a point in a stream.
type event struct {
	handle cuda.Event
	ctx    *context
	flags  cuda.EventFlags
	by     Caller
	last   *op // the record, nil if there was none

	capture *capture // if last recorded in one
	nodes   []*node

	// shared has two counters that other processes see: how often the event was
	// recorded, and which of the records is done. Nil unless interprocess.
	shared *chunk
	opened bool // of another process

	destroyed bool
}

func (e *event) close() {
	if e.shared != nil {
		e.shared.close()
		e.shared = nil
	}
}

// onEvent begins a call about an event.
func (c *call) onEvent(h cuda.Event) *event {
	c.begin()
	return c.event(h)
}

func (c *call) event(h cuda.Event) *event {
	e := c.events[h]
	c.refuse(e == nil, cuda.ErrInvalidHandle, "%#x is no event, or was destroyed", uintptr(h))
	c.healthy(e.ctx)
	return e
}

func (m *Machine) EventCreate(flags cuda.EventFlags) (_ cuda.Event, err error) {
	c := m.call("cuEventCreate", &err)
	defer c.end()
	c.beginIn()
	const all = cuda.EventBlockingSync | cuda.EventDisableTiming | cuda.EventInterprocess
	if flags&^all != 0 || flags&cuda.EventInterprocess != 0 && flags&cuda.EventDisableTiming == 0 {
		c.fail(cuda.ErrInvalidValue, "flags %#x: interprocess events need EventDisableTiming", flags)
	}
	e := &event{handle: cuda.Event(m.handles.give(eventHandle)), ctx: c.ctx, flags: flags,
		by: m.caller(c.ctx.dev)}
	if flags&cuda.EventInterprocess != 0 {
		m.serial++
		e.shared, err = newChunk(label{id: hash("event", m.id, m.serial), size: 16, device: c.ctx.dev.UUID, kind: chunkEvent},
			false)
		c.system(err)
	}
	m.events[e.handle] = e
	return e.handle, nil
}

func (m *Machine) EventDestroy(h cuda.Event) (err error) {
	c := m.call("cuEventDestroy", &err)
	defer c.end()
	e := c.onEvent(h)
	m.forgetEvent(e)
	if e.last == nil || e.last.done {
		e.close()
	} else { // others may still wait for the record
		last, close := e.last.onDone, e.close
		e.last.onDone = func() {
			if last != nil {
				last()
			}
			close()
		}
	}
	return nil
}

func (m *Machine) forgetEvent(e *event) {
	e.destroyed = true
	delete(m.events, e.handle)
	m.handles.back(eventHandle, uintptr(e.handle))
}

func (m *Machine) EventRecord(h cuda.Event, s cuda.Stream) error {
	return m.recordEvent("cuEventRecord", h, s, 0)
}

func (m *Machine) EventRecordWithFlags(h cuda.Event, s cuda.Stream, flags uint32) error {
	return m.recordEvent("cuEventRecordWithFlags", h, s, flags)
}

func (m *Machine) recordEvent(name string, h cuda.Event, sh cuda.Stream, flags uint32) (err error) {
	c := m.call(name, &err)
	defer c.end()
	s, e := c.onStream(sh), c.event(h)
	switch {
	case e.ctx != s.ctx:
		c.fail(cuda.ErrInvalidHandle, "event of device %d, stream of device %d", e.ctx.dev.ordinal, s.ctx.dev.ordinal)
	case flags > 1:
		c.fail(cuda.ErrInvalidValue, "flags %#x", flags)
	case s.capture == nil && flags == 1: // CU_EVENT_RECORD_EXTERNAL: a node of the graph
		c.fail(cuda.ErrIllegalState, "an external record, and the stream is not capturing")
	case flags == 1:
		c.record(s, recordWork{e})
	case s.capture != nil:
		c.recordable(s)
		e.capture, e.nodes = s.capture, append([]*node{}, s.tail...)
	default:
		c.implicit(s)
		e.attach(c.push(s, recordWork{e}))
	}
	return nil
}

// attach makes an op the last record, for which later waits are.
func (e *event) attach(o *op) {
	e.last, e.capture, e.nodes = o, nil, nil
	if e.shared != nil {
		o.counter = atomic.AddUint64(&e.shared.counters()[0], 1)
	}
}

// recordWork records an event. In a graph its op becomes the last record at the launch.
type recordWork struct{ e *event }

func (w recordWork) step(m *Machine, o *op) bool {
	if s := w.e.shared; s != nil {
		m.mem.Released()
		done := &s.counters()[1]
		for v := atomic.LoadUint64(done); v < o.counter && !atomic.CompareAndSwapUint64(done, v, o.counter); {
			v = atomic.LoadUint64(done)
		}
	}
	return true
}

// done reports whether the record is done, wherever it was made.
func (e *event) done() bool { return (e.last == nil || e.last.done) && e.recorded(e.target()) }

// target is the number of the last record: a wait that begins now is for that one.
func (e *event) target() uint64 {
	if e.shared == nil {
		return 0
	}
	return atomic.LoadUint64(&e.shared.counters()[0])
}

// recorded reports whether record n of an interprocess event is done.
func (e *event) recorded(n uint64) bool {
	return e.shared == nil || atomic.LoadUint64(&e.shared.counters()[1]) >= n
}

func (m *Machine) EventQuery(h cuda.Event) (_ bool, err error) {
	c := m.call("cuEventQuery", &err)
	defer c.end()
	e := c.onEvent(h)
	c.notCaptured(e)
	m.exec.poke()
	done := e.done()
	if done {
		c.saw(e.last)
	}
	c.healthy(e.ctx)
	return done, nil
}

func (m *Machine) EventSynchronize(h cuda.Event) (err error) {
	c := m.call("cuEventSynchronize", &err)
	defer c.end()
	e := c.onEvent(h)
	c.notCaptured(e)
	last, target := e.last, e.target()
	if e.shared != nil && (last == nil || last.done) && !e.recorded(target) {
		last = m.submit(nil, 0, foreignWait{e, target})
	}
	c.waitFor(e.ctx, []*op{last})
	return nil
}

// notCaptured fails if the event was last recorded into a graph.
func (c *call) notCaptured(e *event) {
	switch {
	case e.capture == nil:
		c.unsafe()
		return
	case c.captures[e.capture]:
		c.violate([]*capture{e.capture}, cuda.ErrCapturedEvent, "the event was recorded in a capture")
	}
	c.fail(cuda.ErrInvalidValue, ofEnded)
}

const ofEnded = "the event was recorded in a capture that has ended: record it again"

func (m *Machine) EventElapsedTime(start, end cuda.Event) (ms float32, err error) {
	c := m.call("cuEventElapsedTime", &err)
	defer c.end()
	a := c.onEvent(start)
	b := c.event(end)
	switch {
	case a.flags&cuda.EventDisableTiming != 0 || b.flags&cuda.EventDisableTiming != 0:
		c.fail(cuda.ErrInvalidHandle, "an event without timing")
	case a.capture != nil || b.capture != nil:
		c.fail(cuda.ErrInvalidValue, "an event recorded in a capture")
	case a.last == nil || b.last == nil:
		c.fail(cuda.ErrInvalidHandle, "an event that was not recorded")
	case a.ctx != b.ctx:
		c.fail(cuda.ErrInvalidHandle, "events of different devices")
	}
	if m.exec.poke(); !a.last.done || !b.last.done {
		c.fail(cuda.ErrNotReady, "")
	}
	return float32((b.last.at - a.last.at).Seconds() * 1000), nil
}

func (m *Machine) StreamWaitEvent(sh cuda.Stream, h cuda.Event, flags uint32) (err error) {
	c := m.call("cuStreamWaitEvent", &err)
	defer c.end()
	s, e := c.onStream(sh), c.event(h)
	switch {
	case flags > 1:
		c.fail(cuda.ErrInvalidValue, "flags %#x", flags)
	case e.capture != nil && c.captures[e.capture] && flags == 0:
		c.join(s, e)
		return nil
	case s.capture == nil && flags == 1: // CU_EVENT_WAIT_EXTERNAL
		c.fail(cuda.ErrIllegalState, "an external wait, and the stream is not capturing")
	case flags == 1:
		c.record(s, eventWait{e})
		return nil
	case s.capture != nil && e.unrecorded():
		return nil
	case s.capture != nil && e.capture != nil:
		c.violate([]*capture{s.capture}, cuda.ErrInvalidValue, ofEnded)
	case s.capture != nil:
		c.violate([]*capture{s.capture}, cuda.ErrStreamCaptureIsolation,
			"the event was recorded outside of the capture")
	case e.capture != nil:
		c.fail(cuda.ErrInvalidValue, ofEnded)
	}
	if c.implicit(s); !e.unrecorded() {
		c.push(s, foreignWait{e, e.target()}, e.last)
	}
	return nil
}

// unrecorded reports whether there is nothing to wait for.
func (e *event) unrecorded() bool { return e.last == nil && e.capture == nil && e.shared == nil }

// foreignWait waits for a record that another process may have made.
type foreignWait struct {
	e      *event
	target uint64
}

func (w foreignWait) step(m *Machine, o *op) bool { return w.e.recorded(w.target) }

// eventWait, in a graph, waits for the last record before the graph's launch: GraphLaunch
// makes a foreignWait of it.
type eventWait struct{ e *event }

func (w eventWait) step(*Machine, *op) bool { return true }
