package dlpack

import (
	"unsafe"

	"github.com/ringo-go/ringo/mem"
)

// The structs of DLPack 1.1, as C lays them out where pointers have 64 bits.

// A device is a DLDevice.
type device struct{ kind, id int32 }

// The kinds of devices whose memory is taken.
const (
	onCPU         = 1
	onCUDA        = 2
	onCUDAHost    = 3
	onCUDAManaged = 13
)

// A tensor is a DLTensor. Addresses are numbers: the memory there belongs to another library, or is pinned.
type tensor struct {
	data    uintptr
	device  device
	ndim    int32
	dtype   Type
	shape   uintptr
	strides uintptr // in elements, null for a dense array
	offset  uint64
}

// A legacy is a DLManagedTensor.
type legacy struct {
	tensor  tensor
	context uintptr
	deleter uintptr
}

// A versioned is a DLManagedTensorVersioned. The fields before the tensor are the same in all versions.
type versioned struct {
	major, minor uint32
	context      uintptr
	deleter      uintptr
	flags        uint64
	tensor       tensor
}

// major and minor are the version of lent tensors. Borrowed ones must have the same major.
const (
	major = 1
	minor = 1
)

// readOnly is the flag of a tensor that must not be written.
const readOnly = 1

func readVersioned(at uintptr) header {
	v := (*versioned)(pointer(at))
	h := header{deleter: v.deleter, major: v.major}
	if v.major == major {
		h.tensor, h.readOnly = &v.tensor, v.flags&readOnly != 0
	}
	return h
}

func readLegacy(at uintptr) header {
	v := (*legacy)(pointer(at))
	return header{tensor: &v.tensor, deleter: v.deleter}
}

// numbers copies n numbers at an address.
func numbers(at uintptr, n int) []int64 {
	if n == 0 {
		return nil
	}
	return append([]int64(nil), unsafe.Slice((*int64)(pointer(at)), n)...)
}

// host is n bytes of memory outside of Go's heap, which an address alone keeps valid.
func host(at uintptr, n int) mem.Region {
	if n == 0 {
		return mem.Region{}
	}
	return mem.Host(unsafe.Slice((*byte)(pointer(at)), n))
}

// pointer is an address of another library's memory.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// slice is host memory as elements.
func slice[T any](r mem.Region) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(r.Bytes()))), r.Len()/int(unsafe.Sizeof(zero)))
}

// fill fills in t, which lies in the struct p. Pins keep p, the numbers and the memory in place until the loan ends.
func (l *lent) fill(t *tensor, p any) {
	l.pins.Pin(p)
	t.dtype, t.device = l.dtype, device{onCPU, 0}
	if l.region.IsHost() && l.region.Len() > 0 {
		l.pins.Pin(unsafe.SliceData(l.region.Bytes()))
	}
	if !l.region.IsHost() {
		t.device = device{onCUDA, int32(l.region.Dev())}
	}
	if l.region.Len() > 0 {
		t.data = l.region.Ptr()
	}
	n := len(l.numbers) / 2
	t.ndim = int32(n)
	if n > 0 {
		l.pins.Pin(unsafe.SliceData(l.numbers))
		t.shape = uintptr(unsafe.Pointer(&l.numbers[0]))
		t.strides = uintptr(unsafe.Pointer(&l.numbers[n]))
	}
}

func (l *lent) asVersioned(only bool, deleter uintptr) uintptr {
	v := &versioned{major: major, minor: minor, deleter: deleter}
	if only {
		v.flags = readOnly
	}
	l.current = v
	l.fill(&v.tensor, v)
	return uintptr(unsafe.Pointer(v))
}

func (l *lent) asLegacy(deleter uintptr) uintptr {
	v := &legacy{deleter: deleter}
	l.legacy = v
	l.fill(&v.tensor, v)
	return uintptr(unsafe.Pointer(v))
}
