package gpucomm

import (
	"errors"
	"sync"
	"time"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/request"
	"github.com/ringo-go/ringo/trace"
)

// An observed tells an observer of the calls on a GPU, and when the GPU carried them out: it records an event on the
// stream before what is queued and one after it. Nobody waits for them: who comes by later looks which have
// passed. The methods of a nil observed, which nobody observes, do nothing.
type observed struct {
	numberer *request.Numberer
	driver   cuda.Driver
	ctx      cuda.Context
	clock    gpuClock
	now      *operation // the current one; with the Turn

	mu     sync.Mutex
	idle   []*operation // guarded by mu
	flight []*operation // guarded by mu; queued and not known to have ended, oldest first
}

// inFlight is how many operations are timed at once. The times of those that are queued meanwhile are not known.
const inFlight = 256

// An operation is calls that are queued together: one, or those of a batch or an exchange.
type operation struct {
	begin, end gpu.Event // 0 for the one that stands for those which are not timed
	began      bool      // begin is recorded
	ended      bool      // end is, after it
	calls      []observedCall
	n          int // of calls
}

type observedCall struct {
	*request.Watch
	*trace.Call
}

// openObserved is nil if nobody observes.
func openObserved(n *request.Numberer, d *gpu.Device, e *estate) (*observed, error) {
	if n.Observer == nil {
		return nil, nil
	}
	o := &observed{numberer: n, driver: d.Driver(), ctx: e.ctx, idle: []*operation{{}}}
	e.keep(o.close)
	return o, cuda.Quietly(o.driver, o.ctx, func() error { return o.clock.start(o.driver) })
}

// arrive says that calls have come, which are queued next. The Turn is held.
func (o *observed) arrive() {
	if o == nil {
		return
	}
	o.look()
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.idle) - 1; last > 0 {
		o.now, o.idle = o.idle[last], o.idle[:last]
	} else if o.now = o.idle[0]; len(o.flight) < inFlight { // the first is for what is not timed
		if p, err := o.operation(); err == nil {
			o.now = p
		}
	}
	o.now.n, o.now.began, o.now.ended = 0, false, false
}

// operation makes one.
func (o *observed) operation() (p *operation, err error) {
	p = new(operation)
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

// begin says that one of them has a number.
func (o *observed) begin(c *call.Call, r *request.Request) {
	if o == nil {
		return
	}
	p := o.now
	if p.n == len(p.calls) {
		p.calls = append(p.calls, observedCall{Watch: o.numberer.Watch(0, true)})
	}
	x := &p.calls[p.n]
	p.n++
	x.Arrive()
	x.Call = x.Watch.Begin(c, r)
	x.Queued = x.Start
}

// before says that they are queued on a stream from here on. The device's context is current.
func (o *observed) before(s gpu.Stream) {
	if o != nil && o.now != nil && o.now.begin != 0 && !o.now.began {
		o.now.began = o.driver.EventRecord(o.now.begin, s) == nil
	}
}

// after says that they are queued up to here.
func (o *observed) after(s gpu.Stream) {
	if o != nil && o.now != nil && o.now.began {
		o.now.ended = o.driver.EventRecord(o.now.end, s) == nil
	}
}

// issued says that they are queued, or why they are not.
func (o *observed) issued(err error) {
	if o == nil || o.now == nil {
		return
	}
	p := o.now
	o.now = nil
	now := trace.Now()
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

// lookFor is look; unless err is nil it ends all others too.
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
				failed = o.numberer.Life.Err() // which ended it
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

// tell ends the calls of an operation.
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

// A gpuClock says when events have passed. The GPU knows the time between two events, and as a float of ms: so the
// time of one of them is known, base, and none is much later.
type gpuClock struct {
	base gpu.Event
	at   int64 // trace.Now then
	last int64 // when the operation before ended
}

// far is how long after its base an event may be before that becomes a later one: 1 s has a resolution of 60 ns.
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
	for range 2 { // the first one has to be loaded
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
	// Clocks drift: what has not been queued cannot have begun, and what has passed has.
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
