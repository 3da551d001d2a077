package kernels

import (
	"sync"
	"unsafe"
)

// A loop is dst = a ⊕ b for bytes: equal lengths, a whole number of elements,
// starting anywhere. dst may be a or b; otherwise they do not overlap. Loops
// with one operand get it twice.
type loop func(dst, a, b []byte)

// element makes a loop over bytes from a loop over elements. Where a slice
// does not start at a multiple of the element's size, which Go's rules for
// pointers ask for, the data go through aligned memory, part by part.
func element[T any](f func(dst, a, b []T)) loop {
	return func(dst, a, b []byte) {
		if aligned[T](dst) && aligned[T](a) && aligned[T](b) {
			f(view[T](dst), view[T](a), view[T](b))
			return
		}
		s := scratch.Get().(*[2][]byte)
		for len(dst) > 0 {
			n := min(len(dst), len(s[0]))
			x, y := s[0][:n], s[1][:n]
			copy(x, a)
			copy(y, b)
			f(view[T](x), view[T](x), view[T](y))
			copy(dst, x)
			dst, a, b = dst[n:], a[n:], b[n:]
		}
		scratch.Put(s)
	}
}

// scratch holds pairs of aligned buffers, each a multiple of every element's
// size. A pair is one object.
var scratch = sync.Pool{New: func() any {
	p := new(struct {
		words [2][512]uint64
		bytes [2][]byte
	})
	p.bytes = [2][]byte{bytesOf(p.words[0][:]), bytesOf(p.words[1][:])}
	return &p.bytes
}}

func sizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

func aligned[T any](b []byte) bool {
	var zero T
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%unsafe.Alignof(zero) == 0
}

// view is b as a slice of T. b is aligned.
func view[T any](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/sizeOf[T]())
}

func bytesOf[T any](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*sizeOf[T]())
}

// sameMemory reports whether two slices start at the same byte.
func sameMemory(a, b []byte) bool { return unsafe.SliceData(a) == unsafe.SliceData(b) }
