// Package dlpack lends memory to other libraries of a process and borrows theirs, without a copy, by DLPack's managed
// tensors: CuPy, PyTorch, NumPy, JAX and TVM speak it. It is for Go in their process, as a shared library or an
// extension module.
//
// A managed tensor is a C struct: an address, its device, the shape and type of the array there, and the function by
// which the borrower gives the memory back. Lend and LendLegacy make a tensor of a mem.Region; Borrow and BorrowLegacy
// take one. The struct of DLPack 1 (DLManagedTensorVersioned) has a version and a read-only flag; most libraries still
// give the older one (DLManagedTensor) unless asked. Python hands both on in a capsule: Borrow takes the capsule's
// pointer; the address from Lend goes into a new capsule "dltensor_versioned", that from LendLegacy into "dltensor".
//
// The structs are laid out by hand and their functions called without cgo, which works on Linux on amd64 and arm64 (not
// with the tag ringo_nogpu); elsewhere every function says so. Nothing of CUDA is loaded here.
//
// The trap: nobody waits for work. Whoever lends memory of a GPU has its work there done, or ordered before the
// borrower's by streams.
package dlpack

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/mem"
)

// ErrReturned is the error of methods of a Tensor after Close.
var ErrReturned = errors.New("dlpack: the tensor was given back")

// An Error says which field of a managed tensor keeps it from being borrowed or lent, and why.
type Error struct {
	Field  string // of the struct, by its name in C: "strides"
	Reason string
}

func (e *Error) Error() string { return "dlpack: " + e.Field + ": " + e.Reason }

func wrong(field, format string, args ...any) error {
	return &Error{field, fmt.Sprintf(format, args...)}
}

// supported is the error on systems where C functions cannot be called, nil elsewhere.
var supported = sync.OnceValue(func() error {
	if _, err := dl.Open("libc.so.6"); errors.Is(err, dl.ErrUnsupported) {
		return fmt.Errorf("dlpack: %w", err)
	}
	return nil
})

// A Tensor is memory that another library has lent. Its methods may be called from any goroutine.
type Tensor struct {
	Shape    []int // elements in each dimension; nil for one element
	Type     Type
	ReadOnly bool // nobody may write to the memory

	region mem.Region
	mu     sync.Mutex
	back   func() // guarded by mu; gives the tensor back, nil when that was done
}

// Borrow takes the managed tensor at an address, a DLManagedTensorVersioned, until Close. The address itself is not
// checked, only the struct's fields. Anything but a dense array of a known type in memory of the host or of a CUDA
// device is refused with an *Error; a refused tensor stays the caller's, who gives it back with Discard.
func Borrow(at uintptr) (*Tensor, error) { return borrow(at, readVersioned) }

// BorrowLegacy is Borrow of a DLManagedTensor.
func BorrowLegacy(at uintptr) (*Tensor, error) { return borrow(at, readLegacy) }

// Discard gives back a DLManagedTensorVersioned that nobody has borrowed.
func Discard(at uintptr) error { return discard(at, readVersioned) }

// DiscardLegacy is Discard of a DLManagedTensor.
func DiscardLegacy(at uintptr) error { return discard(at, readLegacy) }

// A header holds the fields of a managed tensor of either kind.
type header struct {
	tensor   *tensor // nil where the version has another layout
	deleter  uintptr
	readOnly bool
	major    uint32
}

func borrow(at uintptr, read func(uintptr) header) (*Tensor, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if at == 0 {
		return nil, wrong("tensor", "null")
	}
	h := read(at)
	if h.tensor == nil {
		return nil, wrong("version", "%d, of which the layout is not known; %d is", h.major, major)
	}
	t := &Tensor{Type: h.tensor.dtype, ReadOnly: h.readOnly, back: giveBack(at, h.deleter)}
	if err := t.take(h.tensor); err != nil {
		return nil, err
	}
	return t, nil
}

func discard(at uintptr, read func(uintptr) header) error {
	if err := supported(); err != nil {
		return err
	}
	if at == 0 {
		return wrong("tensor", "null")
	}
	giveBack(at, read(at).deleter)()
	return nil
}

// giveBack returns a function that calls the deleter with the tensor's address. A deleter of 0 is not called.
func giveBack(at, deleter uintptr) func() {
	return func() {
		if deleter != 0 {
			dl.Call(deleter, at)
		}
	}
}

// maxDims bounds the dimensions of a tensor, above the limit of any library known.
const maxDims = 64

// take checks all fields of a struct and fills t.
func (t *Tensor) take(x *tensor) error {
	size := t.Type.size()
	switch {
	case t.Type.Lanes != 1:
		return wrong("dtype", "vectors of %d lanes: make it a tensor of single elements", t.Type.Lanes)
	case size == 0:
		return wrong("dtype", "code %d of %d bits is not known here: convert the elements", t.Type.Code, t.Type.Bits)
	case x.ndim < 0 || x.ndim > maxDims:
		return wrong("ndim", "%d is not in 0…%d", x.ndim, maxDims)
	case x.ndim > 0 && x.shape == 0:
		return wrong("shape", "null, of %d dimensions", x.ndim)
	}
	count := int64(1)
	empty := false
	shape := numbers(x.shape, int(x.ndim))
	for _, n := range shape {
		switch {
		case n < 0:
			return wrong("shape", "%d elements", n)
		case n == 0:
			empty = true
			continue
		case count > math.MaxInt64/int64(size)/n:
			return wrong("shape", "%v is more than there is memory for", shape)
		}
		count *= n
	}
	for _, n := range shape {
		t.Shape = append(t.Shape, int(n))
	}
	if empty {
		count = 0
	} else if x.strides != 0 {
		if err := dense(shape, numbers(x.strides, int(x.ndim))); err != nil {
			return err
		}
	}
	return t.place(x, count*int64(size), uint64(size))
}

// dense refuses strides other than those of a contiguous array in row-major order.
func dense(shape, strides []int64) error {
	want := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && strides[i] != want {
			return wrong("strides", "%v of shape %v: the elements do not lie one behind the other; make it contiguous first",
				strides, shape)
		}
		want *= shape[i]
	}
	return nil
}

// place sets t.region to the n elements' memory.
func (t *Tensor) place(x *tensor, n int64, size uint64) error {
	at := x.data + uintptr(x.offset)
	switch {
	case n == 0:
		at = 0
	case x.data == 0:
		return wrong("data", "null, of %d bytes", n)
	case at < x.data || uint64(at) > math.MaxInt64-uint64(n):
		return wrong("byte_offset", "%d leads out of memory from %#x on", x.offset, x.data)
	case uint64(at)%min(size, 8) != 0:
		return wrong("byte_offset", "elements of %d bytes at %#x are not aligned; copy the tensor first", size, at)
	}
	switch x.device.kind {
	case onCPU, onCUDAHost:
		t.region = host(at, int(n))
	case onCUDA, onCUDAManaged:
		if x.device.id < 0 || x.device.id > maxDevice {
			return wrong("device", "number %d", x.device.id)
		}
		t.region = mem.Device(int(x.device.id), at, int(n))
	default:
		return wrong("device", "type %d is neither the host's memory nor a CUDA device's: move the tensor there",
			x.device.kind)
	}
	return nil
}

// maxDevice bounds a device's number, above the GPUs of any machine.
const maxDevice = 1 << 10

// Region is the tensor's memory, for a ringo.Call; valid until Close. The error is ErrReturned after that.
func (t *Tensor) Region() (mem.Region, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.back == nil {
		return mem.Region{}, ErrReturned
	}
	return t.region, nil
}

// Close gives the tensor back: its deleter is called, once. Nothing may use the memory any more.
func (t *Tensor) Close() error {
	t.mu.Lock()
	back := t.back
	t.back = nil
	t.mu.Unlock()
	if back == nil {
		return ErrReturned
	}
	back()
	return nil
}

// Slice is a tensor of host memory as a slice that shares the memory until Close. T is the type of the elements, or,
// where Go has no such type, an unsigned integer of as many bits. The error is an *Error or ErrReturned.
func Slice[T any](t *Tensor) ([]T, error) {
	r, err := t.Region()
	switch {
	case err != nil:
		return nil, err
	case !r.IsHost():
		return nil, wrong("device", "memory of GPU %d is no slice: see Buffer", r.Dev())
	}
	if err := fits[T](t.Type); err != nil {
		return nil, err
	}
	return slice[T](r), nil
}

// Buffer is a tensor of GPU memory as a Buffer that shares the memory until Close. Buffer asks the driver whether
// kernels of the device may use all of the memory. The error is an *Error, ErrReturned, or the driver's.
func Buffer[T any](t *Tensor, d *gpu.Device) (*gpu.Buffer[T], error) {
	r, err := t.Region()
	switch {
	case err != nil:
		return nil, err
	case r.IsHost():
		return nil, wrong("device", "memory of the host is no Buffer: see Slice")
	case r.Dev() != d.Number():
		return nil, wrong("device", "memory of GPU %d, not of %d", r.Dev(), d.Number())
	}
	if err := fits[T](t.Type); err != nil {
		return nil, err
	}
	return gpu.BufferAt[T](d, r)
}
