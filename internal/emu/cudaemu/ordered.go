// Memory in the order of streams: it is there from where a stream comes to its allocation to where one comes to its
// free. Neither call waits. Its addresses do not come again, so that a late use is found.

package cudaemu

import (
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// MemAllocAsync is cuMemAllocAsync, which cuda.Driver does not have: the C interface calls it.
func (m *Machine) MemAllocAsync(n int, h cuda.Stream) (_ uintptr, err error) {
	c := m.call("cuMemAllocAsync", &err)
	defer c.end()
	s := c.onOrdered(h)
	c.refuse(n <= 0, cuda.ErrInvalidValue, "%d bytes", n)
	r := c.allocate(s.ctx, regionOrdered, n)
	c.enqueue(s, beginWork{r})
	return uintptr(r.addr), nil
}

// MemFreeAsync is cuMemFreeAsync. The memory's room is free for allocations at once: those in other streams would wait
// for the free on hardware.
func (m *Machine) MemFreeAsync(p uintptr, h cuda.Stream) (err error) {
	c := m.call("cuMemFreeAsync", &err)
	defer c.end()
	s := c.onOrdered(h)
	r := m.regions.find(uint64(p))
	if r == nil || r.addr != uint64(p) || r.freed || r.kind != regionAlloc && r.kind != regionOrdered {
		c.fail(cuda.ErrInvalidValue, "%#x was not given by cuMemAllocAsync or cuMemAlloc, or is freed already", p)
	}
	c.enqueue(s, endWork{r, m.caller(r.dev)})
	r.freed = true
	r.dev.used -= r.cost()
	return nil
}

// onOrdered begins a call that allocates or frees in the order of a stream.
func (c *call) onOrdered(h cuda.Stream) *stream {
	s := c.onStream(h)
	c.refuse(s.capture != nil, cuda.ErrNotSupported,
		"graphs with memory of their own are not emulated: call it outside of the capture")
	c.implicit(s)
	return s
}

// freeOrdered is cuMemFree of memory in the order of streams, which waits for nothing: the program has to have waited.
func (c *call) freeOrdered(r *region) {
	c.refuse(r.freed, cuda.ErrInvalidValue, "%#x is freed already", r.addr)
	if r.gone().Load() != 0 {
		c.free(r) // its stream has not come to the allocation
	} else if _, err := c.endLife(r, c.caller(r.dev).called("cudaFree"), c.mem.Host()); err != nil {
		panic(failed{err})
	}
}

// endLife frees memory at a moment.
func (m *Machine) endLife(r *region, call string, after weakmem.Clock) (weakmem.Clock, error) {
	c, err := m.mem.Vanish(r.addr, call, after)
	m.drop(r)
	return c, err
}

// called names a call and where the program makes it.
func (c Caller) called(name string) string {
	if at := c.forWhat(); at != "" {
		name += " (" + at + ")"
	}
	return name
}

type (
	beginWork struct{ r *region }
	endWork   struct {
		r  *region
		by Caller
	}
)

func (w beginWork) step(m *Machine, o *op) bool {
	if m.regions.find(w.r.addr) != w.r {
		return true
	}
	c, err := m.mem.Appear(w.r.addr, w.r.by.called("cudaMallocAsync"), o.after)
	return m.carried(o, c, err)
}

func (w endWork) step(m *Machine, o *op) bool {
	if m.regions.find(w.r.addr) != w.r {
		return true
	}
	c, err := m.endLife(w.r, w.by.called("cudaFreeAsync"), o.after)
	return m.carried(o, c, err)
}
