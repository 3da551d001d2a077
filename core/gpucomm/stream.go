package gpucomm

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// An order has the operations of a communicator follow each other.
type order struct {
	known

	event      gpu.Event             // the end of the last operation, eager or of a graph
	last       uint64                // ID of the last eager operation's stream
	replays    bool                  // a graph may have been launched since then
	recordings map[uint64]*recording // by capture
	chain      *chain                // nil if other communicators have an order of their own
	copyStream copyStream
}

func (o *order) open() (err error) {
	o.recordings = map[uint64]*recording{}
	if o.event, err = o.upkeep.event(); err != nil {
		return err
	}
	if o.LaunchOrder && !o.net.Shared() { // kernels of ranks on one GPU wait for each other
		var leave func() error
		if o.chain, leave, err = joinChain(o.Device); err != nil {
			return err
		}
		o.upkeep.estate.keep(leave)
	}
	return nil
}

// An entry is where one operation is queued: a stream, as the driver has it now. It is made
// for the operation and passed down.
type entry struct {
	stream
	captures bool             // the stream is being captured
	capture  cuda.CaptureInfo // if it is
	observed *operation       // nil if nobody observes
	recorded bool             // the operation's last launch records its end
}

// after has f queue an operation, after the communicator's previous operation and before its
// next one, on whichever streams and in whichever graphs they are.
func (o *order) after(e *entry, f func() error) error {
	if o.chain != nil {
		return o.chain.after(e, func() error { return o.inTurn(e, f) })
	}
	return o.inTurn(e, f)
}

// inTurn is after for the order within the communicator. It records the event each time, which takes 0.1 to 0.3 µs. The
// next operation on another stream cannot do so: this operation's stream may be destroyed by then, and a driver that is
// asked about such a stream crashes.
func (o *order) inTurn(e *entry, f func() error) error {
	if e.captures {
		return o.inGraph(e, f)
	}
	if o.replays || e.id == 0 || e.id != o.last {
		if err := o.Device.Driver().StreamWaitEvent(e.handle, o.event, 0); err != nil {
			return err
		}
	}
	e.observed.before(e.handle)
	if err := f(); err != nil {
		return withOldest(err)
	}
	e.observed.after(e.handle)
	o.net.Wake()
	o.upkeep.announce()
	o.last = e.id
	o.replays = o.upkeep.estate.graphs.Load() > 0 // once all graphs are gone, this operation is behind their last launches
	if e.recorded {
		return nil
	}
	return o.Device.Driver().EventRecord(o.event, e.handle)
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
	if o.event == 0 {
		return nil
	}
	if o.Life.Guard.Aborted() != nil {
		o.engine.Control().Abort()
	}
	return cuda.Quietly(o.Device.Driver(), o.net.Context(),
		func() error { return o.Device.Driver().EventSynchronize(o.event) })
}
