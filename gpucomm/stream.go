package gpucomm

import (
	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// after has f queue an operation on a stream, after the operation before.
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

// follow has the stream wait for the operation before, if that is on another
// one: operations of a communicator happen in the order they are called. What is
// captured is ordered by the caller, who knows where the graph is launched.
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

// eventForOrder is CU_EVENT_DISABLE_TIMING, which is cheaper.
const eventForOrder = 2

// copyIn has the job read a copy of In, for a collective that writes before it
// has read all.
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

// scratch is n bytes of device memory for an operation. What was handed out
// before is kept, since graphs may go on using it.
func (g *Comm) scratch(n int) (mem.Region, error) {
	if k := len(g.spare); k > 0 && g.spare[k-1].Len() >= n {
		return g.spare[k-1].Slice(0, n), nil
	}
	r, err := g.Device.Alloc(max(1, n)) // no memory has no address
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
