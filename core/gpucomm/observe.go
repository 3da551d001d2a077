package gpucomm

import (
	"errors"
	"sync"
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/request"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/trace"
)

// An observed tells an observer of the calls on a GPU, and when the GPU carried them out: it records an event on the
// stream before what is queued and one after it. Nobody waits for these events: later calls look which of them have
// passed. Methods of a nil observed and of a nil operation do nothing: nobody observes.
type observed struct {
	numberer *request.Numberer
	driver   cuda.Driver
	ctx      cuda.Context
	clock    gpuClock

	mu     sync.Mutex
	idle   []*operation // guarded by mu
	flight []*operation // guarded by mu; queued and not known to have ended, oldest first
}

// inFlight is how many operations are timed at once. Operations that are queued beyond have no times.
const inFlight = 256

// An operation is calls that are queued together: one, or those of a batch or an exchange.
type operation struct {
	of         *observed
	begin, end gpu.Event // 0 in idle[0], which stands for all that are not timed
	began      bool      // begin is recorded
	ended      bool      // end is recorded, after begin
	calls      []observedCall
	n          int // of calls
}

type observedCall struct {
	*request.Watch
	*trace.Call
}

// openObserved makes an observed, nil if nobody observes.
func openObserved(n *request.Numberer, e *estate) (*observed, error) {
	if n.Observer == nil {
		return nil, nil
	}
	o := &observed{numberer: n, driver: e.driver, ctx: e.ctx}
	o.idle = []*operation{{of: o}} // for all that are not timed
	e.keep(o.close)
	return o, cuda.Quietly(o.driver, o.ctx, func() error { return o.clock.start(o.driver) })
}

// arrive tells the observer of calls that will be queued next, as one operation. The Turn is held.
func (o *observed) arrive() (p *operation) {
	if o == nil {
		return nil
	}
	o.look()
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.idle) - 1; last > 0 {
		p, o.idle = o.idle[last], o.idle[:last]
	} else if p = o.idle[0]; len(o.flight) < inFlight { // idle[0] stays
		if timed, err := o.operation(); err == nil {
			p = timed
		}
	}
	p.n, p.began, p.ended = 0, false, false
	return p
}

// operation makes an operation and its two events.
func (o *observed) operation() (p *operation, err error) {
	p = &operation{of: o}
	err = cuda.Quietly(o.driver, o.ctx, func() error {
		if p.begin, err = o.driver.EventCreate(cuda.EventDefault); err == nil {
			if p.end, err = o.driver.EventCreate(cuda.EventDefault); err != nil {
				err = errors.Join(err, o.driver.EventDestroy(p.begin))
			}
		}
		return err
	})
	return p, err
}

// add adds a call to the operation, with its number.
func (p *operation) add(c *call.Call, r *request.Request) {
	if p == nil {
		return
	}
	if p.n == len(p.calls) {
		p.calls = append(p.calls, observedCall{Watch: p.of.numberer.Watch(0, true)})
	}
	x := &p.calls[p.n]
	p.n++
	x.Arrive()
	x.Call = x.Watch.Begin(c, r)
	x.Queued = x.Start
}

// before records the event at which the operation begins on a stream. The device's context is current.
func (p *operation) before(s gpu.Stream) {
	if p != nil && p.begin != 0 && !p.began {
		p.began = p.of.driver.EventRecord(p.begin, s) == nil
	}
}

// after records the event at which the operation ends.
func (p *operation) after(s gpu.Stream) {
	if p != nil && p.began {
		p.ended = p.of.driver.EventRecord(p.end, s) == nil
	}
}

// issued notes that the operation is queued, or the error that kept it from being queued.
func (p *operation) issued(err error) {
	if p == nil {
		return
	}
	o, now := p.of, trace.Now()
	for i := range p.calls[:p.n] {
		p.calls[i].Issued = now
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.ended && err == nil {
		o.flight = append(o.flight, p)
		return
	}
	p.tell(err)
	if p.begin != 0 {
		o.idle = append(o.idle, p)
	}
}

// look ends the operations that the GPU has done. It may be called at any time.
func (o *observed) look() { o.lookFor(nil) }

// lookFor is look. Unless err is nil, it ends all other operations too, with err.
func (o *observed) lookFor(err error) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.flight) == 0 {
		return
	}
	done := 0
	cuda.Quietly(o.driver, o.ctx, func() error {
		for _, p := range o.flight {
			passed, failed := o.driver.EventQuery(p.end)
			if failed == nil && !passed && err == nil {
				break
			}
			done++
			if passed && failed == nil {
				o.clock.times(o.driver, p)
				failed = o.numberer.Life.Failure() // that of the communicator has ended the operation
			} else if failed == nil {
				failed = err
			}
			p.tell(failed)
			o.idle = append(o.idle, p)
		}
		return nil
	})
	o.flight = append(o.flight[:0], o.flight[done:]...)
}

// tell tells the observer that the operation's calls have ended.
func (p *operation) tell(err error) {
	for i := range p.calls[:p.n] {
		c := &p.calls[i]
		end := c.Call.End
		if end == 0 { // the GPU's clock says nothing
			end = c.Issued
		}
		c.Watch.EndAt(end, err)
	}
}

// close gives back the events. The estate calls it, when nothing is in flight.
func (o *observed) close() error {
	return cuda.Quietly(o.driver, o.ctx, func() (err error) {
		for _, p := range o.idle {
			for _, e := range []gpu.Event{p.begin, p.end} {
				if e != 0 && err == nil {
					err = o.driver.EventDestroy(e)
				}
			}
		}
		if err == nil && o.clock.base != 0 {
			err = o.driver.EventDestroy(o.clock.base)
		}
		return err
	})
}

// A gpuClock says when events have passed. The driver knows only the time between two events, as a float32 of ms: so
// the clock keeps the time of one event, base, and takes a later one before that grows inexact.
type gpuClock struct {
	base gpu.Event
	at   int64 // trace.Now then
	last int64 // when the operation before ended
}

// far is how long after the base an event may pass before that event becomes the base: 1 s has a resolution of 60 ns.
const far = time.Second

// start measures the time of a first event, on a stream that has nothing else to do.
func (k *gpuClock) start(d cuda.Driver) error {
	s, err := d.StreamCreate(cuda.StreamNonBlocking, 0)
	if err != nil {
		return err
	}
	defer d.StreamDestroy(s)
	if k.base, err = d.EventCreate(cuda.EventDefault); err != nil {
		return err
	}
	for range 2 { // the driver loads at the first record
		before := trace.Now()
		if err := d.EventRecord(k.base, s); err != nil {
			return err
		}
		if err := d.EventSynchronize(k.base); err != nil {
			return err
		}
		k.at = before + (trace.Now()-before)/2
	}
	return nil
}

// times fills in when the calls of an operation that has passed began and ended.
func (k *gpuClock) times(d cuda.Driver, p *operation) {
	from, err := d.EventElapsedTime(k.base, p.begin)
	if err != nil {
		return
	}
	to, err := d.EventElapsedTime(k.base, p.end)
	if err != nil {
		return
	}
	begin, end := int64(float64(from)*1e6), int64(float64(to)*1e6)
	// Clocks drift: but an operation begins after it is queued, and this one has ended before now.
	if early := p.calls[0].Queued - (k.at + begin); early > 0 {
		k.at += early
	}
	if late := k.at + end - trace.Now(); late > 0 {
		k.at -= late
	}
	start := max(k.at+begin, k.last) // operations follow each other
	k.last = max(k.at+end, start)
	for i := range p.calls[:p.n] {
		c := p.calls[i].Call
		c.Start, c.End = start, k.last
	}
	if end > int64(far) {
		k.base, p.end, k.at = p.end, k.base, k.at+end
	}
}
