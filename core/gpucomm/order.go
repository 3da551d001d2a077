package gpucomm

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/gpupaths"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// An order has the operations of a communicator follow each other, on whichever streams and in whichever graphs they
// are: begin puts an operation after the one before, end notes where it ends.
type order struct {
	life   *life.Life
	device *gpu.Device
	driver cuda.Driver
	net    *gpupaths.Net
	engine *grid.Engine
	estate *estate
	watch  *watch

	event      gpu.Event             // the end of the last operation, eager or of a graph
	last       uint64                // ID of the last eager operation's stream
	replays    bool                  // a graph may have been launched since then
	recordings map[uint64]*recording // by capture
	chain      *chain                // nil if other communicators have an order of their own
}

// newOrder makes an order. With Options.LaunchOrder it is also that of the GPU's other communicators.
func newOrder(g *Options, net *gpupaths.Net, engine *grid.Engine, e *estate, w *watch) (o *order, err error) {
	o = &order{life: g.Life, device: g.Device, driver: e.driver, net: net, engine: engine, estate: e, watch: w,
		recordings: map[uint64]*recording{}}
	if o.event, err = e.event(); err != nil {
		return nil, err
	}
	if g.LaunchOrder && !net.Shared() { // kernels of ranks on one GPU wait for each other
		var leave func() error
		if o.chain, leave, err = joinChain(g.Process, g.Device); err != nil {
			return nil, err
		}
		e.keep(leave)
	}
	return o, nil
}

// begin has the operation that is queued next follow the one before. The caller calls leave in any case.
func (o *order) begin(e *entry) error {
	if o.chain != nil {
		if err := o.chain.begin(e); err != nil {
			return err
		}
	}
	if e.captures {
		return o.beginInGraph(e)
	}
	if o.replays || e.id == 0 || e.id != o.last {
		if err := o.driver.StreamWaitEvent(e.handle, o.event, 0); err != nil {
			return err
		}
	}
	e.observed.before(e.handle)
	return nil
}

// beginInGraph is begin on a stream that is being captured.
func (o *order) beginInGraph(e *entry) error {
	o.forget(o.estate.gone())
	id := e.capture.ID
	if e.inOwn = o.recordings[id]; e.inOwn == nil {
		if err := o.estate.hold(e.capture.Graph, id); err != nil {
			return err
		}
		e.inOwn = new(recording)
		o.recordings[id], o.replays = e.inOwn, true
		o.net.Vigilant(true)
		o.watch.announce()
	}
	return e.inOwn.begin(o.driver, e, o.event)
}

// end notes the end of the operation. It records the event each time, which takes 0.1 to 0.3 µs. The next operation on
// another stream cannot do so: this operation's stream may be destroyed by then, and a driver that is asked about such
// a stream crashes.
func (o *order) end(e *entry) (err error) {
	if e.captures {
		err = e.inOwn.end(o.driver, e, o.event)
	} else {
		e.observed.after(e.handle)
		o.net.Wake()
		o.watch.announce()
		o.last = e.id
		o.replays = o.estate.graphs.Load() > 0 // once all graphs are gone, this operation is behind their last launches
		if !e.recorded {
			err = o.driver.EventRecord(o.event, e.handle)
		}
	}
	if err == nil && o.chain != nil {
		err = o.chain.end(e)
	}
	return err
}

// leave lets the operations of other communicators follow.
func (o *order) leave(e *entry) {
	if o.chain != nil {
		o.chain.leave(e)
	}
}

// endEvent is the event for an operation's last launch to record: the engine does so with the
// launch in one call of the driver. It is 0 for an operation that is captured.
func (o *order) endEvent(e *entry) gpu.Event {
	if e.captures {
		return 0
	}
	e.recorded = true
	return o.event
}

// withOldest names the call that a full work FIFO waits for.
func withOldest(err error) error {
	var full *grid.FullError
	if !errors.As(err, &full) {
		return err
	}
	return fmt.Errorf("%w; the oldest call that has not ended is %s", err, call.ReadSign(full.Oldest).Numbered())
}

// finish waits until the operations that were queued have ended, and the graphs that were
// launched.
func (o *order) finish() error {
	if o.life.Guard.Aborted() != nil {
		o.engine.Control().Abort()
	}
	return cuda.Quietly(o.driver, o.net.Context(), func() error { return o.driver.EventSynchronize(o.event) })
}

// forget drops what is kept for captures whose graphs are gone.
func (o *order) forget(captures []uint64) {
	for _, id := range captures {
		delete(o.recordings, id)
		o.engine.Forget(id)
	}
	o.chain.forget(captures)
	if len(captures) > 0 && len(o.recordings) == 0 {
		o.net.Vigilant(false)
	}
}

// capturing reports whether a stream of the rank's GPU is being captured.
func (o *order) capturing(s gpu.Stream) bool {
	if s == 0 || s == gpu.Legacy { // these cannot be captured
		return false
	}
	status := cuda.CaptureNone
	err := o.device.With(func() (err error) {
		status, err = o.driver.StreamIsCapturing(s)
		return err
	})
	return err == nil && status == cuda.CaptureActive
}

// graphTime is how long the driver may take to say that a graph which was destroyed is gone.
const graphTime = 200 * time.Millisecond

// holders is how many graphs hold operations in a window. It waits up to graphTime for them to go.
func (o *order) holders(window int) (n int) {
	for end := time.Now().Add(graphTime); ; time.Sleep(time.Millisecond) {
		o.forget(o.estate.gone())
		n = 0
		for _, r := range o.recordings {
			if _, uses := r.windows[window]; uses {
				n++
			}
		}
		if n == 0 || time.Now().After(end) {
			return n
		}
	}
}

// copiesIn reports whether a graph holds copies in a window.
func (o *order) copiesIn(window int) bool {
	o.forget(o.estate.gone())
	for _, r := range o.recordings {
		if r.windows[window] {
			return true
		}
	}
	return false
}
