package gpu

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// A MemoryError says why kernels of a device must not be given a region, and what
// to do.
type MemoryError struct {
	Region mem.Region
	Device int
	Reason string
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%d bytes at %#x: device %d: %s", e.Region.Len(), e.Region.Ptr(), e.Device, e.Reason)
}

// Check asks the driver whether kernels of this device may use all of a region, which
// must be memory of the device's primary context, or pinned host memory. The error is a
// *MemoryError unless the driver fails. whole is the allocation, or several in a row, that
// the region lies in. Check takes five calls of the driver for each allocation. The device's
// context has to be current, see With.
func (d *Device) Check(r mem.Region) (whole mem.Region, err error) {
	wrong := func(format string, args ...any) (mem.Region, error) {
		return mem.Region{}, &MemoryError{r, d.number, fmt.Sprintf(format, args...)}
	}
	if r.Len() == 0 {
		return r, nil
	}
	if r.IsNil() {
		return wrong("null: give memory of gpu.Device.Alloc or cuMemAlloc")
	}
	first, at, end := uintptr(0), r.Ptr(), r.Ptr()+uintptr(r.Len())
	for at < end {
		ask := func(a cuda.PointerAttribute) (v uint64) {
			if err == nil {
				v, err = d.driver.PointerGetAttribute(a, at)
			}
			return v
		}
		kind, owner, elsewhere := ask(cuda.PointerMemoryType), uint64(d.number), false
		if kind == cuda.MemoryTypeDevice {
			owner = ask(cuda.PointerDeviceOrdinal)
			ctx := cuda.Context(ask(cuda.PointerContext)) // 0 for memory of cuMemMap
			elsewhere = ctx != 0 && ctx != d.primary() && ask(cuda.PointerIsManaged) == 0
		}
		start, size := ask(cuda.PointerRangeStart), ask(cuda.PointerRangeSize)
		switch {
		case errors.Is(err, cuda.ErrInvalidValue) && at > r.Ptr():
			return wrong("its allocation ends at %#x: pass a shorter region", at)
		case errors.Is(err, cuda.ErrInvalidValue):
			return wrong("no memory of a GPU: freed, never allocated, or the host's and not pinned; give memory of " +
				"gpu.Device.Alloc or cuMemAlloc")
		case err != nil:
			return mem.Region{}, err
		case int(owner) != d.number:
			return wrong("memory of device %d: give memory of device %d, or have the rank use the other one", owner, d.number)
		case elsewhere:
			return wrong("memory of another context of cuCtxCreate, which kernels of the device's primary context do not " +
				"reach: make that one current before memory is allocated, by cuDevicePrimaryCtxRetain or cudaSetDevice (PyCUDA: " +
				"pycuda.autoprimaryctx)")
		}
		next := uintptr(start + size)
		if next < end && ask(cuda.PointerLegacyIPC) != 0 { // memory of cuMemMap may go on behind, not that of cuMemAlloc
			return wrong("it exceeds its allocation of %d bytes at %#x: pass a shorter region", size, start)
		}
		if first == 0 {
			first = uintptr(start)
		}
		if next <= at {
			return wrong("the driver says that it lies in [%#x, %#x)", start, start+size)
		}
		at = next
	}
	return mem.Device(d.number, first, int(at-first)), nil
}

// primary is the device's context, 0 before it is needed.
func (d *Device) primary() cuda.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ctx
}

// Frees counts the calls of Free. While it stays the same, results of Check for memory
// from Alloc still hold.
func (d *Device) Frees() uint64 { return d.frees.Load() }
