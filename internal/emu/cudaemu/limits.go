package cudaemu

import (
	"github.com/ringo-go/ringo/internal/cuda"
)

// Limits of a context, by CUDA's numbers; kernels notice the first two.
const (
	limitStack = 0 // bytes a thread, for functions that call themselves
	limitHeap  = 2 // bytes for malloc in kernels

	limitPrint = 1 // bytes of printf's buffer
	limitDepth = 3 // of kernels that wait for those that they launch, which there are no more
	limitFetch = 5 // bytes, of which the second cache fetches at most 128
)

// defaultLimits are what an H100 begins with; those of printf's buffer and of caches nothing notices.
var defaultLimits = [...]int{limitStack: 1 << 10, limitPrint: 8448 << 10, limitHeap: 8 << 20, limitDepth: 0, 4: 2048,
	limitFetch: 64, 6: 0}

const (
	stackEnd  = 512 << 10 // a thread's stack is smaller
	leastHeap = 4 << 20
)

// CtxSetLimit is cuCtxSetLimit.
func (m *Machine) CtxSetLimit(limit, n int) error {
	c, err := m.beginIn("cuCtxSetLimit")
	if err != nil {
		return err
	}
	defer c.end()
	x := c.ctx
	switch {
	case limit < 0 || limit >= len(x.limits):
		return c.fail(cuda.ErrUnsupportedLimit, "there is no limit %d", limit)
	case limit == limitDepth:
		return c.fail(cuda.ErrUnsupportedLimit, "limit %d is of older devices", limit)
	case limit == limitFetch && n > 128:
		return c.fail(cuda.ErrInvalidValue, "%d bytes, expected 128 at most", n)
	case limit == limitStack && n >= stackEnd:
		return c.fail(cuda.ErrInvalidValue, "%d bytes of stack a thread, expected less than %d", n, stackEnd)
	case limit == limitHeap && x.heap.begun:
		return c.fail(cuda.ErrInvalidValue, "kernels have called malloc already, expected the heap's size before")
	}
	switch limit {
	case limitStack:
		n = int(roundUp(uint64(n), 16))
	case limitPrint:
		n = max(n, 512<<10)
	case limitHeap:
		n = max(int(roundUp(uint64(n), 64<<10)), leastHeap)
	}
	x.limits[limit] = n
	return nil
}

// CtxGetLimit is cuCtxGetLimit.
func (m *Machine) CtxGetLimit(limit int) (int, error) {
	c, err := m.beginIn("cuCtxGetLimit")
	if err != nil {
		return 0, err
	}
	defer c.end()
	switch {
	case limit < 0 || limit >= len(c.ctx.limits):
		return 0, c.fail(cuda.ErrUnsupportedLimit, "there is no limit %d", limit)
	case limit == limitDepth:
		return 0, c.fail(cuda.ErrUnsupportedLimit, "limit %d is of older devices", limit)
	}
	return c.ctx.limits[limit], nil
}

// A heap is what malloc in kernels of a context gives: regions of their own, so that uses beyond an end and after free
// are found as with cuMemAlloc.
type heap struct {
	ctx   *context
	used  int
	begun bool // by the first malloc
}

// heapOverhead is what a piece takes besides its bytes.
const heapOverhead = 16

func (h *heap) Malloc(n uint64) uint64 {
	x := h.ctx
	h.begun = true
	size := int(roundUp(min(n, 1<<40)+heapOverhead, 16))
	if n == 0 || size > x.limits[limitHeap]-h.used {
		return 0
	}
	r, err := (&call{Machine: x.m, name: "malloc in a kernel", ctx: x}).allocate(x, regionHeap, int(n))
	if err != nil {
		return 0
	}
	h.used += size
	return r.addr
}

func (h *heap) Free(addr uint64) bool {
	m := h.ctx.m
	r := m.regions.find(addr)
	if r == nil || r.kind != regionHeap || r.ctx != h.ctx || r.addr != addr {
		return false
	}
	h.used -= int(roundUp(r.size+heapOverhead, 16))
	m.drop(r)
	return true
}
