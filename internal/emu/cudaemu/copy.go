package cudaemu

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// accessible checks memory of a copy or memset that the device of a context does.
func (c *call) accessible(x *context, p uintptr, n int) {
	r := c.memory(p, n)
	c.refuse(r.kind == regionMapping && r.granted>>x.dev.ordinal&1 == 0, cuda.ErrInvalidValue,
		"%#x is mapped, but device %d has no access: call cuMemSetAccess", p, x.dev.ordinal)
	c.refuse(r.kind == regionHeap, cuda.ErrInvalidValue, "%#x is of malloc in a kernel, which kernels alone reach", p)
}

// onDefault begins a copy or memset without a stream, which the legacy default
// stream takes. Which of these calls wait is in the driver's "API synchronization
// behavior"; TestBehaviour has recorded what hardware does.
func (c *call) onDefault(p uintptr, n int) {
	c.beginIn()
	c.implicit(c.ctx.legacy)
	if n != 0 {
		c.accessible(c.ctx, p, n)
	}
}

// MemcpyHtoD waits for the legacy stream, reads src and returns, which is before
// the bytes are there: work that nothing orders after that stream may run first.
func (m *Machine) MemcpyHtoD(dst uintptr, src []byte) (err error) {
	c := m.call("cuMemcpyHtoD", &err)
	defer c.end()
	c.onDefault(dst, len(src))
	if len(src) > 0 {
		c.hold(c.ctx, c.ctx.legacy.before())
		c.push(c.ctx.legacy, writeWork{uint64(dst), slices.Clone(src)})
		c.settle(dst, uintptr(addressOf(src)))
	}
	return nil
}

// MemcpyDtoH returns when the bytes are there.
func (m *Machine) MemcpyDtoH(dst []byte, src uintptr) (err error) {
	c := m.call("cuMemcpyDtoH", &err)
	defer c.end()
	c.onDefault(src, len(dst))
	if len(dst) > 0 {
		c.hold(c.ctx, []*op{c.push(c.ctx.legacy, readWork{dst, uint64(src), c.caller(c.ctx.dev)})})
	}
	return nil
}

// hold waits for work of a context and keeps copies of other GPUs waiting.
func (c *call) hold(ctx *context, ops []*op) {
	ctx.held++
	defer func() {
		ctx.held--
		c.exec.progress.Broadcast()
	}()
	c.waitFor(ctx, ops)
}

// pass has a copy wait for the calls that hold the context of memory on another GPU.
func (c *call) pass(s *stream, ends ...uintptr) {
	if !c.cfg.LoadsWait || s.capture != nil {
		return
	}
	for _, p := range ends {
		if r := c.regions.find(uint64(p)); r != nil && r.kind == regionAlloc && r.ctx != s.ctx {
			c.await(s.ctx, func() bool { return r.ctx.held == 0 })
		}
	}
}

// MemcpyDtoD does not wait, unless settle does.
func (m *Machine) MemcpyDtoD(dst, src uintptr, n int) (err error) {
	c := m.call("cuMemcpyDtoD", &err)
	defer c.end()
	c.onDefault(dst, n)
	c.copy(c.ctx.legacy, dst, src, n)
	c.settle(dst, src)
	return nil
}

// settle waits for a copy or memset on the legacy stream if source or destination is
// pinned host memory, or PointerSetSyncMemops was set for it.
func (c *call) settle(ends ...uintptr) {
	for _, p := range ends {
		if r := c.regions.find(uint64(p)); r != nil && (r.dev == nil || r.sync) {
			c.waitFor(c.ctx, []*op{c.ctx.legacy.last})
			return
		}
	}
}

func (m *Machine) MemcpyAsync(dst, src uintptr, n int, h cuda.Stream) (err error) {
	c := m.call("cuMemcpyAsync", &err)
	defer c.end()
	s := c.onStream(h)
	c.copy(s, dst, src, n)
	return nil
}

// MemcpyHtoDAsync is a copy of pageable host memory, which cuda.Driver does not have: the C interface calls it. It has
// read src when it returns, unless it is captured.
func (m *Machine) MemcpyHtoDAsync(dst uintptr, src []byte, h cuda.Stream) error {
	return m.pageable("cuMemcpyHtoDAsync", dst, len(src), h, func(s *stream) work {
		if s.capture == nil {
			src = slices.Clone(src)
		}
		return writeWork{uint64(dst), src}
	})
}

// MemcpyDtoHAsync is the copy to pageable host memory. It returns before it is done.
func (m *Machine) MemcpyDtoHAsync(dst []byte, src uintptr, h cuda.Stream) error {
	return m.pageable("cuMemcpyDtoHAsync", src, len(dst), h, func(s *stream) work {
		return readWork{dst, uint64(src), m.caller(s.ctx.dev)}
	})
}

// pageable enqueues a copy of which the driver knows one end.
func (m *Machine) pageable(name string, p uintptr, n int, h cuda.Stream, w func(*stream) work) (err error) {
	c := m.call(name, &err)
	defer c.end()
	s := c.onStream(h)
	if n > 0 {
		c.accessible(s.ctx, p, n)
		c.enqueue(s, w(s))
	}
	return nil
}

// MemcpyPeerAsync cannot be captured, unlike MemcpyAsync between the same devices.
func (m *Machine) MemcpyPeerAsync(dst uintptr, dstCtx cuda.Context, src uintptr, srcCtx cuda.Context, n int,
	h cuda.Stream) (err error) {
	c := m.call("cuMemcpyPeerAsync", &err)
	defer c.end()
	s := c.onStream(h)
	c.uncaptured(s, "a copy between contexts cannot be captured: use MemcpyAsync")
	for _, end := range []struct {
		p uintptr
		h cuda.Context
	}{{dst, dstCtx}, {src, srcCtx}} {
		ctx := c.context(end.h)
		if r := c.regions.find(uint64(end.p)); r != nil && r.dev != nil && r.dev != ctx.dev {
			c.fail(cuda.ErrInvalidValue, "%#x is memory of device %d, its context that of device %d", end.p,
				r.dev.ordinal, ctx.dev.ordinal)
		}
	}
	c.copy(s, dst, src, n)
	return nil
}

func (c *call) copy(s *stream, dst, src uintptr, n int) {
	if n == 0 {
		return
	}
	c.accessible(s.ctx, dst, n)
	c.accessible(s.ctx, src, n)
	c.pass(s, dst, src)
	c.enqueue(s, copyWork{uint64(dst), uint64(src), n, c.caller(s.ctx.dev)})
}

// MemsetD8 does not wait, unless settle does.
func (m *Machine) MemsetD8(p uintptr, v byte, n int) (err error) {
	c := m.call("cuMemsetD8", &err)
	defer c.end()
	c.onDefault(p, n)
	c.set(c.ctx.legacy, p, []byte{v}, n)
	c.settle(p)
	return nil
}

func (m *Machine) MemsetD8Async(p uintptr, v byte, n int, h cuda.Stream) (err error) {
	c := m.call("cuMemsetD8Async", &err)
	defer c.end()
	s := c.onStream(h)
	c.set(s, p, []byte{v}, n)
	return nil
}

func (m *Machine) MemsetD32Async(p uintptr, v uint32, words int, h cuda.Stream) (err error) {
	c := m.call("cuMemsetD32Async", &err)
	defer c.end()
	s := c.onStream(h)
	c.refuse(p%4 != 0, cuda.ErrInvalidValue, "%#x is not aligned to 4 bytes", p)
	c.set(s, p, binary.LittleEndian.AppendUint32(nil, v), 4*words)
	return nil
}

func (c *call) set(s *stream, p uintptr, pattern []byte, n int) {
	if n != 0 {
		c.accessible(s.ctx, p, n)
		c.enqueue(s, setWork{uint64(p), pattern, n})
	}
}

type (
	copyWork struct {
		dst, src uint64
		n        int
		by       Caller
	}
	setWork struct {
		p       uint64
		pattern []byte
		n       int
	}
	writeWork struct {
		dst uint64
		src []byte
	}
	readWork struct {
		dst []byte
		src uint64
		by  Caller
	}
)

// copying names the program's copy, "" if it is not known where that is.
func (c Caller) copying() string {
	if at := c.forWhat(); at != "" {
		return "copy at " + at
	}
	return ""
}

func (w copyWork) step(m *Machine, o *op) bool {
	m.mem.For = w.by.copying
	c, err := m.mem.Copy(w.dst, w.src, w.n, o.after)
	return m.carried(o, c, err)
}

func (w setWork) step(m *Machine, o *op) bool {
	c, err := m.mem.Set(w.p, w.pattern, w.n, o.after)
	return m.carried(o, c, err)
}

func (w writeWork) step(m *Machine, o *op) bool {
	c, err := m.mem.Write(w.dst, w.src, o.after)
	return m.carried(o, c, err)
}

func (w readWork) step(m *Machine, o *op) bool {
	m.mem.For = w.by.copying
	c, err := m.mem.Read(w.dst, w.src, o.after)
	return m.carried(o, c, err)
}

// carried notes the result of a copy. The op is done in any case.
func (m *Machine) carried(o *op, c weakmem.Clock, err error) bool {
	o.clock = c
	if err != nil {
		m.faulted(o, err)
	}
	return true
}

// faulted ends an op's context because of a fault.
func (m *Machine) faulted(o *op, err error) {
	var f *weakmem.Fault
	if !errors.As(err, &f) {
		f = &weakmem.Fault{Kind: weakmem.OutOfBounds, Device: -1, Detail: err.Error(), Count: 1}
	}
	if !slices.Contains(m.reports, f) {
		m.report(f)
	}
	if o.ctx != nil {
		o.ctx.fail(resultOf(f), f.Error())
	}
}

// results are the driver's results for faults of which it has some of their own.
var results = map[weakmem.FaultKind]cuda.Result{
	weakmem.OutOfBounds: cuda.ErrIllegalAddress,
	weakmem.NoAccess:    cuda.ErrIllegalAddress,
	weakmem.Misaligned:  cuda.ErrMisalignedAddress,
	weakmem.Assertion:   cuda.ErrAssert,
	weakmem.Deadlock:    cuda.ErrLaunchTimeout,
	weakmem.BadCall:     cuda.ErrInvalidPC,
}

// resultOf is the driver's result for a fault.
func resultOf(f *weakmem.Fault) cuda.Result {
	if r, ok := results[f.Kind]; ok {
		return r
	}
	return cuda.ErrLaunchFailed // as of a trap
}
