package gpucomm

import (
	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// after has f queue an operation on a stream, after the communicator's previous operation.
func (g *Comm) after(s gpu.Stream, f func() error) error {
	if err := g.follow(s); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	g.net.Wake()
	if g.captures {
		return nil
	}
	g.last = s
	return g.Device.Driver().EventRecord(g.event, s)
}

// follow has the stream wait for the previous operation, if that is on another stream:
// operations of a communicator happen in the order in which they are called. What is captured
// does not wait: the caller orders it, who knows where the graph is launched.
func (g *Comm) follow(s gpu.Stream) (err error) {
	driver := g.Device.Driver()
	switch {
	case g.captures:
	case g.event == 0:
		g.event, err = driver.EventCreate(eventForOrder)
	case g.last != s:
		err = driver.StreamWaitEvent(s, g.event, 0)
	}
	return err
}

// eventForOrder makes an event without a time stamp, which is cheaper
// (CU_EVENT_DISABLE_TIMING).
const eventForOrder = 2

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

// scratch is n bytes of GPU memory for the current operation. Smaller memory of operations
// before stays allocated, since graphs may use it.
func (g *Comm) scratch(n int) (mem.Region, error) {
	if k := len(g.spare); k > 0 && g.spare[k-1].Len() >= n {
		return g.spare[k-1].Slice(0, n), nil
	}
	r, err := g.Device.Alloc(max(1, n)) // a region must have an address
	if err != nil {
		return r, err
	}
	g.spare = append(g.spare, r)
	return r.Slice(0, n), nil
}

// finish waits until the operations that were queued have ended.
func (g *Comm) finish() error {
	if g.event == 0 {
		return nil
	}
	if g.Life.Guard.Aborted() != nil {
		g.engine.Control().Abort()
	}
	return g.Device.With(func() error { return g.Device.Driver().EventSynchronize(g.event) })
}
