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
func (m *Machine) onEvent(name string, h cuda.Event) (*call, *event, error) {
	c, err := m.begin(name)
	if err != nil {
		return nil, nil, err
	}
	e, err := c.event(h)
	if err != nil {
		c.end()
		return nil, nil, err
	}
	return c, e, nil
}

func (c *call) event(h cuda.Event) (*event, error) {
	e := c.events[h]
	if e == nil {
		return nil, c.fail(cuda.ErrInvalidHandle, "%#x is no event, or was destroyed", uintptr(h))
	}
	return e, c.healthy(e.ctx)
}

func (m *Machine) EventCreate(flags cuda.EventFlags) (cuda.Event, error) {
	c, err := m.beginIn("cuEventCreate")
	if err != nil {
		return 0, err
	}
	defer c.end()
	const all = cuda.EventBlockingSync | cuda.EventDisableTiming | cuda.EventInterprocess
	if flags&^all != 0 || flags&cuda.EventInterprocess != 0 && flags&cuda.EventDisableTiming == 0 {
		return 0, c.fail(cuda.ErrInvalidValue, "flags %#x: interprocess events need EventDisableTiming", flags)
	}
	e := &event{handle: cuda.Event(m.handles.give(eventHandle)), ctx: c.ctx, flags: flags,
		by: m.caller(c.ctx.dev)}
	if flags&cuda.EventInterprocess != 0 {
		m.serial++
		e.shared, err = newChunk(label{id: hash("event", m.id, m.serial), size: 16, device: c.ctx.dev.UUID, kind: chunkEvent},
			false)
		if err != nil {
			return 0, c.system(err)
		}
	}
	m.events[e.handle] = e
	return e.handle, nil
}

func (m *Machine) EventDestroy(h cuda.Event) error {
	c, e, err := m.onEvent("cuEventDestroy", h)
	if err != nil {
		return err
	}
	defer c.end()
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

func (m *Machine) recordEvent(name string, h cuda.Event, sh cuda.Stream, flags uint32) error {
	c, s, e, err := m.onStreamWith(name, sh, h)
	if err != nil {
		return err
	}
	defer c.end()
	switch {
	case e.ctx != s.ctx:
		return c.fail(cuda.ErrInvalidHandle, "event of device %d, stream of device %d", e.ctx.dev.ordinal, s.ctx.dev.ordinal)
	case flags > 1:
		return c.fail(cuda.ErrInvalidValue, "flags %#x", flags)
	case s.capture == nil && flags == 1: // CU_EVENT_RECORD_EXTERNAL: a node of the graph
		return c.fail(cuda.ErrIllegalState, "an external record, and the stream is not capturing")
	case flags == 1:
		return c.record(s, recordWork{e})
	case s.capture != nil:
		if err := c.recordable(s); err != nil {
			return err
		}
		e.capture, e.nodes = s.capture, append([]*node{}, s.tail...)
		return nil
	}
	if err := c.implicit(s); err != nil {
		return err
	}
	e.attach(c.push(s, recordWork{e}))
	return nil
}

// onStreamWith is onStream, with an event.
func (m *Machine) onStreamWith(name string, sh cuda.Stream, h cuda.Event) (*call, *stream, *event, error) {
	c, s, err := m.onStream(name, sh)
	if err != nil {
		return nil, nil, nil, err
	}
	e, err := c.event(h)
	if err != nil {
		c.end()
		return nil, nil, nil, err
	}
	return c, s, e, nil
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

func (m *Machine) EventQuery(h cuda.Event) (bool, error) {
	c, e, err := m.onEvent("cuEventQuery", h)
	if err != nil {
		return false, err
	}
	defer c.end()
	if err := c.notCaptured(e); err != nil {
		return false, err
	}
	if m.exec.poke(); !e.done() {
		return false, c.healthy(e.ctx)
	}
	c.saw(e.last)
	return true, c.healthy(e.ctx)
}

func (m *Machine) EventSynchronize(h cuda.Event) error {
	c, e, err := m.onEvent("cuEventSynchronize", h)
	if err != nil {
		return err
	}
	defer c.end()
	if err := c.notCaptured(e); err != nil {
		return err
	}
	last, target := e.last, e.target()
	if e.shared != nil && (last == nil || last.done) && !e.recorded(target) {
		last = m.submit(nil, 0, foreignWait{e, target})
	}
	err = c.await(e.ctx, func() bool { return last == nil || last.done })
	c.saw(last)
	return err
}

// notCaptured fails if the event was last recorded into a graph.
func (c *call) notCaptured(e *event) error {
	switch {
	case e.capture == nil:
		return c.unsafe()
	case c.captures[e.capture]:
		return c.violate([]*capture{e.capture}, cuda.ErrCapturedEvent, "the event was recorded in a capture")
	}
	return c.fail(cuda.ErrInvalidValue, ofEnded)
}

const ofEnded = "the event was recorded in a capture that has ended: record it again"

func (m *Machine) EventElapsedTime(start, end cuda.Event) (ms float32, err error) {
	c, a, err := m.onEvent("cuEventElapsedTime", start)
	if err != nil {
		return 0, err
	}
	defer c.end()
	b, err := c.event(end)
	switch {
	case err != nil:
		return 0, err
	case a.flags&cuda.EventDisableTiming != 0 || b.flags&cuda.EventDisableTiming != 0:
		return 0, c.fail(cuda.ErrInvalidHandle, "an event without timing")
	case a.capture != nil || b.capture != nil:
		return 0, c.fail(cuda.ErrInvalidValue, "an event recorded in a capture")
	case a.last == nil || b.last == nil:
		return 0, c.fail(cuda.ErrInvalidHandle, "an event that was not recorded")
	case a.ctx != b.ctx:
		return 0, c.fail(cuda.ErrInvalidHandle, "events of different devices")
	}
	if m.exec.poke(); !a.last.done || !b.last.done {
		return 0, c.fail(cuda.ErrNotReady, "")
	}
	return float32((b.last.at - a.last.at).Seconds() * 1000), nil
}

func (m *Machine) StreamWaitEvent(sh cuda.Stream, h cuda.Event, flags uint32) error {
	c, s, e, err := m.onStreamWith("cuStreamWaitEvent", sh, h)
	if err != nil {
		return err
	}
	defer c.end()
	switch {
	case flags > 1:
		return c.fail(cuda.ErrInvalidValue, "flags %#x", flags)
	case e.capture != nil && c.captures[e.capture] && flags == 0:
		return c.join(s, e)
	case s.capture == nil && flags == 1: // CU_EVENT_WAIT_EXTERNAL
		return c.fail(cuda.ErrIllegalState, "an external wait, and the stream is not capturing")
	case flags == 1:
		return c.record(s, eventWait{e})
	case s.capture != nil && e.unrecorded():
		return nil
	case s.capture != nil && e.capture != nil:
		return c.violate([]*capture{s.capture}, cuda.ErrInvalidValue, ofEnded)
	case s.capture != nil:
		return c.violate([]*capture{s.capture}, cuda.ErrStreamCaptureIsolation,
			"the event was recorded outside of the capture")
	case e.capture != nil:
		return c.fail(cuda.ErrInvalidValue, ofEnded)
	}
	if err := c.implicit(s); err != nil || e.unrecorded() {
		return err
	}
	c.push(s, foreignWait{e, e.target()}, e.last)
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
