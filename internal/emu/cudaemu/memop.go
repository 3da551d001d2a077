// Stream memory operations: writes of values, and waits for values.

package cudaemu

import "github.com/ringo-go/ringo/internal/cuda"

func (m *Machine) StreamWriteValue32(s cuda.Stream, p uintptr, v uint32, flags uint32) error {
	return m.writeValue("cuStreamWriteValue32", s, p, uint64(v), 4, flags)
}

func (m *Machine) StreamWriteValue64(s cuda.Stream, p uintptr, v uint64, flags uint32) error {
	return m.writeValue("cuStreamWriteValue64", s, p, v, 8, flags)
}

func (m *Machine) StreamWaitValue32(s cuda.Stream, p uintptr, v uint32, flags cuda.WaitFlags) error {
	return m.waitValue("cuStreamWaitValue32", s, p, uint64(v), 4, flags)
}

func (m *Machine) StreamWaitValue64(s cuda.Stream, p uintptr, v uint64, flags cuda.WaitFlags) error {
	return m.waitValue("cuStreamWaitValue64", s, p, v, 8, flags)
}

func (m *Machine) writeValue(name string, h cuda.Stream, p uintptr, v uint64, size int, flags uint32) error {
	return m.memop(name, h, p, size, flags <= 1, writeValue{uint64(p), v, size})
}

func (m *Machine) waitValue(name string, h cuda.Stream, p uintptr, v uint64, size int, flags cuda.WaitFlags) error {
	const flush = 1 << 30 // CU_STREAM_WAIT_VALUE_FLUSH
	flags &^= flush
	return m.memop(name, h, p, size, flags <= cuda.WaitNOR, waitValue{uint64(p), v, size, flags})
}

func (m *Machine) memop(name string, h cuda.Stream, p uintptr, size int, ok bool, w work) (err error) {
	c := m.call(name, &err)
	defer c.end()
	s := c.onStream(h)
	c.refuse(!ok || int(p)%size != 0, cuda.ErrInvalidValue, "flags, or %#x is not aligned to %d bytes", p, size)
	c.accessible(s.ctx, p, size)
	if a, ok := m.mem.Find(uint64(p)); ok && !m.access(s.ctx.dev.ordinal, a) {
		c.fail(cuda.ErrInvalidValue,
			"%#x is memory of a device to which the stream's has no access: enable peer access", p)
	}
	c.enqueue(s, w)
	return nil
}

type writeValue struct {
	p, v uint64
	size int
}

func (w writeValue) step(m *Machine, o *op) bool {
	c, err := m.mem.StoreRelease(w.p, w.v, w.size, o.after)
	return m.carried(o, c, err)
}

type waitValue struct {
	p, v  uint64
	size  int
	flags cuda.WaitFlags
}

func (w waitValue) step(m *Machine, o *op) bool {
	if got, err := m.mem.Peek(w.p, w.size); err == nil && !w.holds(got) {
		return false
	}
	got, c, err := m.mem.LoadAcquire(w.p, w.size, o.after)
	return m.carried(o, c, err) && (err != nil || w.holds(got))
}

func (w waitValue) holds(got uint64) bool {
	switch w.flags {
	case cuda.WaitEQ:
		return got == w.v
	case cuda.WaitAND:
		return got&w.v != 0
	case cuda.WaitNOR:
		if w.size == 4 {
			return uint32(^(got | w.v)) != 0
		}
		return ^(got | w.v) != 0
	}
	if w.size == 4 {
		return int32(uint32(got)-uint32(w.v)) >= 0
	}
	return int64(got-w.v) >= 0
}
