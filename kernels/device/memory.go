package device

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// A MemoryError says that kernels must not be given a region.
type MemoryError struct {
	Region mem.Region
	Device int // of the kernels
	Reason string
	Err    error // the driver's; may be nil
}

func (e *MemoryError) Unwrap() error { return e.Err }

func (e *MemoryError) Error() string {
	s := fmt.Sprintf("device: %d bytes at %#x: device %d: %s", e.Region.Len(), e.Region.Ptr(), e.Device, e.Reason)
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	return s
}

// CheckMemory asks the driver whether kernels may use a region. A region has to lie in one
// allocation, of this device or a peer, or in registered host memory. A launch does not ask,
// since that takes about a µs a region: call CheckMemory where a caller's memory comes in.
// The error is a *MemoryError.
func (c *Combiner) CheckMemory(r mem.Region) error {
	wrong := func(err error, format string, args ...any) error {
		return &MemoryError{r, int(c.device), fmt.Sprintf(format, args...), err}
	}
	switch {
	case r.Len() == 0:
		return nil
	case r.IsNil():
		return wrong(nil, "null")
	}
	attribute := func(a cuda.PointerAttribute) (v uint64, err error) {
		err = cuda.Quietly(c.driver, c.ctx, func() error {
			v, err = c.driver.PointerGetAttribute(a, r.Ptr())
			return err
		})
		return v, err
	}
	kind, err := attribute(cuda.PointerMemoryType)
	if err != nil {
		return wrong(err, "no memory of a GPU: freed, never allocated, or the host's and not registered")
	}
	if kind == cuda.MemoryTypeDevice {
		ordinal, err := attribute(cuda.PointerDeviceOrdinal)
		if err != nil {
			return wrong(err, "whose memory it is could not be told")
		}
		if !c.peers[int(ordinal)] {
			return wrong(nil, "memory of device %d, which is not reached: enable peer access", ordinal)
		}
	}
	start, err := attribute(cuda.PointerRangeStart)
	if err != nil {
		return wrong(err, "its allocation could not be found")
	}
	size, err := attribute(cuda.PointerRangeSize)
	if err != nil {
		return wrong(err, "its allocation could not be found")
	}
	if end := start + size; uint64(r.Ptr()) > end || end-uint64(r.Ptr()) < uint64(r.Len()) {
		return wrong(nil, "it exceeds its allocation of %d bytes at %#x", size, start)
	}
	return nil
}
