package grid

import (
	"errors"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

const (
	stageBytes = 64 << 10
	slabBytes  = 128 << 10
)

// memory is what an Engine holds on its device, and how it writes there.
type memory struct {
	driver   cuda.Driver
	ctx      cuda.Context
	dev      cuda.Device
	store    *cuda.Store // memory and modules, which are not freed while kernels may run
	stream   cuda.Stream // for uploads
	stage    uintptr     // pinned host memory that uploads pass through
	owned    []uintptr   // device memory
	fixed    int         // bytes of owned
	slab     uintptr     // free memory for carve
	slabLeft int
	slabs    *cuda.Growing // after the first one
	tmp      *cuda.Growing // scratch
}

func newMemory(d cuda.Driver, ctx cuda.Context, dev cuda.Device) *memory {
	return &memory{driver: d, ctx: ctx, dev: dev, store: cuda.OpenStore(d, ctx), slabs: cuda.NewGrowing(d, ctx, dev),
		tmp: cuda.NewGrowing(d, ctx, dev)}
}

func (m *memory) open() (err error) {
	if m.stage, err = m.store.HostAlloc(stageBytes); err != nil {
		return err
	}
	m.stream, err = m.driver.StreamCreate(cuda.StreamNonBlocking, 0)
	return err
}

func (m *memory) close() error {
	errs := []error{m.tmp.Close(), m.slabs.Close()}
	if m.stream != 0 {
		errs = append(errs, m.quietly(func() error { return m.driver.StreamDestroy(m.stream) }))
		m.stream = 0
	}
	for _, p := range m.owned {
		m.store.Free(p)
	}
	m.owned = nil
	if m.stage != 0 {
		m.store.FreeHost(m.stage)
		m.stage = 0
	}
	errs = append(errs, m.store.Close())
	m.store = nil
	return errors.Join(errs...)
}

// quietly calls f with the context current, in a mode in which calls that a capture
// on this thread would forbid are allowed.
func (m *memory) quietly(f func() error) error { return cuda.Quietly(m.driver, m.ctx, f) }

// carve returns a small part of device memory until Close. The first slab is allocated when the Engine is made. Later
// ones are mapped, which waits for no kernel.
func (m *memory) carve(n int) (p uintptr, err error) {
	n = roundUp(max(1, n), 64)
	switch {
	case n <= m.slabLeft:
	case m.slab == 0:
		if m.slab, err = m.alloc(max(n, slabBytes)); err != nil {
			return 0, err
		}
		m.slabLeft = max(n, slabBytes)
	default:
		used := m.slabs.Size()
		if m.slab, err = m.slabs.AtLeast(used + n); err != nil {
			return 0, err
		}
		m.slab, m.slabLeft = m.slab+uintptr(used), m.slabs.Size()-used
	}
	p = m.slab
	m.slab, m.slabLeft = p+uintptr(n), m.slabLeft-n
	return p, nil
}

// carveClear is carve of zeros.
func (m *memory) carveClear(n int) (p uintptr, err error) {
	if p, err = m.carve(n); err == nil {
		err = m.write(p, make([]byte, n))
	}
	return p, err
}

// alloc returns device memory until Close.
func (m *memory) alloc(n int) (uintptr, error) {
	p, err := m.store.Alloc(n)
	if err == nil {
		m.owned, m.fixed = append(m.owned, p), m.fixed+n
	}
	return p, err
}

// allocClear is alloc of zeros. A kernel of the driver that clears might wait for others.
func (m *memory) allocClear(n int) (p uintptr, err error) {
	if p, err = m.alloc(n); err == nil {
		err = m.write(p, make([]byte, n))
	}
	return p, err
}

// write copies to device memory and waits for the copy alone, not for the caller's
// streams.
func (m *memory) write(to uintptr, b []byte) error {
	stage := pinnedSlice[byte](m.stage, stageBytes)
	for len(b) > 0 {
		n := copy(stage, b)
		if err := m.driver.MemcpyAsync(to, m.stage, n, m.stream); err != nil {
			return err
		}
		if err := m.driver.StreamSynchronize(m.stream); err != nil {
			return err
		}
		to, b = to+uintptr(n), b[n:]
	}
	return nil
}

// Fixed returns how many bytes of device memory the Engine holds until Close. Mapped is how many more Suspend gives
// back. All kernels have ended before Suspend, and none begins before Resume.
func (m *memory) Fixed() int     { return m.fixed + m.slabs.Size() }
func (m *memory) Mapped() int    { return m.tmp.Mapped() }
func (m *memory) Suspend() error { return m.tmp.Suspend() }
func (m *memory) Resume() error  { return m.tmp.Resume() }

func bytesOf[T any](s []T) []byte { return mem.Of(s).Bytes() }
