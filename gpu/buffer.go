package gpu

import (
	"fmt"
	"math"
	"reflect"

	"github.com/ringo-go/ringo/mem"
)

// A Buffer is device memory for elements of one type. Package ongpu has collectives on Buffers.
type Buffer[T any] struct {
	device *Device
	memory mem.Region
	whole  bool // made by Alloc, so that Free frees the memory
}

// Alloc allocates a Buffer of n elements, until Free. The content is undefined. T must not hold
// pointers, which have no meaning on a GPU. Errors wrap the driver's.
func Alloc[T any](d *Device, n int) (*Buffer[T], error) {
	t := reflect.TypeFor[T]()
	if !flat(t) {
		return nil, fmt.Errorf("gpu: %v holds pointers, or nothing: a Buffer is for plain memory", t)
	}
	if n < 0 || n > math.MaxInt/int(t.Size()) {
		return nil, fmt.Errorf("gpu: a Buffer of %d elements of %d bytes", n, t.Size())
	}
	r, err := d.Alloc(n * int(t.Size()))
	if err != nil {
		return nil, err
	}
	return &Buffer[T]{d, r, true}, nil
}

// BufferAt is a Buffer on GPU memory that another library or a function of the driver has allocated. Free of such a
// Buffer is an error. BufferAt asks the driver whether kernels of the device can use all of the memory; see
// Device.Check for that error.
func BufferAt[T any](d *Device, r mem.Region) (*Buffer[T], error) {
	t := reflect.TypeFor[T]()
	if !flat(t) {
		return nil, fmt.Errorf("gpu: %v holds pointers, or nothing: a Buffer is for plain memory", t)
	}
	if r.Len()%int(t.Size()) != 0 {
		return nil, fmt.Errorf("gpu: %d bytes are no whole elements of %d bytes", r.Len(), t.Size())
	}
	err := d.With(func() error {
		_, err := d.Check(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Buffer[T]{d, r, false}, nil
}

// flat reports whether values of a type hold no pointers, so that their bytes are their content.
func flat(t reflect.Type) bool {
	switch k := t.Kind(); {
	case t.Size() == 0:
		return false
	case k >= reflect.Bool && k <= reflect.Complex128 && k != reflect.Uintptr:
		return true
	case k == reflect.Array:
		return flat(t.Elem())
	case k == reflect.Struct:
		for i := range t.NumField() {
			if !flat(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// Len is the number of elements.
func (b *Buffer[T]) Len() int { return b.memory.Len() / b.size() }

func (b *Buffer[T]) size() int { return int(reflect.TypeFor[T]().Size()) }

// Device is the GPU of the memory.
func (b *Buffer[T]) Device() *Device { return b.device }

// Region is the memory, for a ringo.Call.
func (b *Buffer[T]) Region() mem.Region { return b.memory }

// Slice is the part [from, to) of the Buffer, whose memory it shares. It panics beyond the end, as of a slice.
func (b *Buffer[T]) Slice(from, to int) *Buffer[T] {
	return &Buffer[T]{b.device, b.memory.Slice(from*b.size(), (to-from)*b.size()), false}
}

// Free frees the memory. Work that uses it has to be done.
func (b *Buffer[T]) Free() error {
	if !b.whole {
		return fmt.Errorf("gpu: a part of a Buffer is freed with the whole, and what another library owns by that")
	}
	return b.device.Free(b.memory)
}

// Upload copies src to the beginning of the Buffer, and waits for the work on the stream first. Work that is queued
// later on any stream sees the data. Upload cannot be captured.
func (b *Buffer[T]) Upload(s Stream, src []T) error {
	if err := b.device.Synchronize(s); err != nil {
		return err
	}
	return b.device.Write(b.memory, mem.Of(src).Bytes())
}

// Download waits for the work on the stream, copies the beginning of the Buffer to dst, and returns when the data are
// there. Download cannot be captured.
func (b *Buffer[T]) Download(s Stream, dst []T) error {
	if err := b.device.Synchronize(s); err != nil {
		return err
	}
	return b.device.Read(mem.Of(dst).Bytes(), b.memory)
}

// CopyTo queues a copy of the Buffer to the beginning of dst, which lies on this GPU or on one that this GPU reaches.
// CopyTo can be captured.
func (b *Buffer[T]) CopyTo(s Stream, dst *Buffer[T]) error {
	n := b.memory.Len()
	if n > dst.memory.Len() {
		return fmt.Errorf("gpu: copy %d elements into %d", b.Len(), dst.Len())
	}
	if n == 0 {
		return nil
	}
	return b.device.With(func() error {
		return b.device.driver.MemcpyAsync(dst.memory.Ptr(), b.memory.Ptr(), n, s)
	})
}
