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
func (m *Machine) CtxSetLimit(limit, n int) (err error) {
	c := m.call("cuCtxSetLimit", &err)
	defer c.end()
	c.beginIn()
	x := c.ctx
	c.limit(limit)
	c.refuse(limit == limitFetch && n > 128, cuda.ErrInvalidValue, "%d bytes, expected 128 at most", n)
	c.refuse(limit == limitStack && n >= stackEnd, cuda.ErrInvalidValue,
		"%d bytes of stack a thread, expected less than %d", n, stackEnd)
	c.refuse(limit == limitHeap && x.heap.begun, cuda.ErrInvalidValue,
		"kernels have called malloc already, expected the heap's size before")
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

// limit fails for a limit that a context does not have.
func (c *call) limit(limit int) {
	c.refuse(limit < 0 || limit >= len(c.ctx.limits), cuda.ErrUnsupportedLimit, "there is no limit %d", limit)
	c.refuse(limit == limitDepth, cuda.ErrUnsupportedLimit, "limit %d is of older devices", limit)
}

// CtxGetLimit is cuCtxGetLimit.
func (m *Machine) CtxGetLimit(limit int) (_ int, err error) {
	c := m.call("cuCtxGetLimit", &err)
	defer c.end()
	c.beginIn()
	c.limit(limit)
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

func (h *heap) Malloc(n uint64) (addr uint64) {
	x := h.ctx
	h.begun = true
	size := int(roundUp(min(n, 1<<40)+heapOverhead, 16))
	if n == 0 || size > x.limits[limitHeap]-h.used {
		return 0
	}
	var full error
	c := &call{Machine: x.m, name: "malloc in a kernel", ctx: x, err: &full}
	defer func() { c.failed(recover()) }()
	addr = c.allocate(x, regionHeap, int(n)).addr
	h.used += size
	return addr
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
