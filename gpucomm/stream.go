package gpucomm

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// after has f queue an operation on a stream, after the communicator's previous operation
// and before its next one, on whichever streams and in whichever graphs they are.
func (g *Comm) after(s gpu.Stream, f func() error) error {
	if g.chain != nil {
		return g.chain.after(g, s, func() error { return g.inTurn(s, f) })
	}
	return g.inTurn(s, f)
}

// inTurn is after for the order within the communicator. It records the event each time, which takes 0.1 to 0.3 µs:
// the next operation on another stream cannot do it, for this one's may be destroyed by then, and a driver
// that is asked about such a stream crashes.
func (g *Comm) inTurn(s gpu.Stream, f func() error) error {
	if g.captures {
		return g.inGraph(s, f)
	}
	if g.replays || g.streamID == 0 || g.streamID != g.last {
		if err := g.Device.Driver().StreamWaitEvent(s, g.event, 0); err != nil {
			return err
		}
	}
	g.recorded = false
	g.observed.before(s)
	if err := f(); err != nil {
		return withOldest(err)
	}
	g.observed.after(s)
	g.net.Wake()
	g.announce()
	g.last = g.streamID
	g.replays = g.estate.graphs.Load() > 0 // when there are no more, this operation came after their last launches
	if g.recorded {
		return nil
	}
	return g.Device.Driver().EventRecord(g.event, s)
}

// endEvent is the event for the current operation's last launch to record: the engine does so with the
// launch in one call of the driver. It is 0 for an operation that is captured.
func (g *Comm) endEvent() gpu.Event {
	if g.captures {
		return 0
	}
	g.recorded = true
	return g.event
}

// withOldest names the call that a full work FIFO waits for.
func withOldest(err error) error {
	var full *grid.FullError
	if !errors.As(err, &full) {
		return err
	}
	return fmt.Errorf("%w; the oldest call that has not ended is %s", err, call.ReadSign(full.Oldest).Numbered())
}

// copyIn queues a copy of In to scratch memory, and has the job read that: Out is the same
// memory, and the operation writes some of Out before it has read all of In.
func (g *Comm) copyIn(c *call.Call, j *grid.Job) error {
	spare, err := g.scratch(j.In.Len())
	if err != nil {
		return err
	}
	if err := g.Device.Driver().MemcpyAsync(spare.Ptr(), j.In.Ptr(), j.In.Len(), c.Stream); err != nil {
		return err
	}
	j.In = spare
	return nil
}

// scratch is n bytes of GPU memory for the current operation. Those before and those after
// have the same.
func (g *Comm) scratch(n int) (mem.Region, error) {
	at, err := g.spare.Room(n)
	if err != nil {
		return mem.Region{}, err
	}
	return mem.Device(g.Device.Number(), at, n), nil
}

// finish waits until the operations that were queued have ended, and the graphs that were
// launched.
func (g *Comm) finish() error {
	if g.event == 0 {
		return nil
	}
	if g.Life.Guard.Aborted() != nil {
		g.engine.Control().Abort()
	}
	return cuda.Quietly(g.Device.Driver(), g.net.Context(), func() error { return g.Device.Driver().EventSynchronize(g.event) })
}
