package cudac

import "github.com/ringo-go/ringo/internal/cuda"

// A pager is a driver that copies pageable host memory in the order of a stream.
type pager interface {
	MemcpyHtoDAsync(dst uintptr, src []byte, s cuda.Stream) error
	MemcpyDtoHAsync(dst []byte, src uintptr, s cuda.Stream) error
}

// An orderer is a driver that allocates and frees in the order of a stream.
type orderer interface {
	MemAllocAsync(n int, s cuda.Stream) (uintptr, error)
	MemFreeAsync(p uintptr, s cuda.Stream) error
}

func (l *Library) ordered(f func(orderer) error) error {
	d, ok := l.d.(orderer)
	if !ok {
		return cuda.ErrNotSupported
	}
	return f(d)
}

// pageable reports whether an address is of ordinary host memory: the driver does not know it, and it lies below the
// addresses of devices.
func (l *Library) pageable(p uintptr) bool {
	_, err := l.d.PointerGetAttribute(cuda.PointerMemoryType, p)
	return err != nil && uint64(p) < 1<<47
}

// copy is a copy without a stream between any two addresses, done or staged when it returns.
func (l *Library) copy(dst, src, n uintptr) error {
	switch to, from := l.pageable(dst), l.pageable(src); {
	case to && from:
		if err := l.d.StreamSynchronize(0); err != nil {
			return err
		}
		copy(list[byte](dst, n), list[byte](src, n))
		return nil
	case to:
		return l.d.MemcpyDtoH(list[byte](dst, n), src)
	case from:
		return l.d.MemcpyHtoD(dst, list[byte](src, n))
	}
	return l.d.MemcpyDtoD(dst, src, int(n))
}

// copyAsync is a copy in the order of a stream. When it returns, a copy to pageable memory is done, unless the stream
// is being captured, and a copy from pageable memory has read it.
func (l *Library) copyAsync(dst, src, n uintptr, s cuda.Stream) error {
	to, from := l.pageable(dst), l.pageable(src)
	p, ok := l.d.(pager)
	if !to && !from || !ok {
		return l.d.MemcpyAsync(dst, src, int(n), s)
	}
	captured, err := l.d.StreamIsCapturing(s)
	if err != nil {
		return err
	}
	if from && !to {
		return p.MemcpyHtoDAsync(dst, list[byte](src, n), s)
	}
	if !from {
		err = p.MemcpyDtoHAsync(list[byte](dst, n), src, s)
	} else if captured != 0 {
		return l.d.LaunchHostFunc(s, func() { copy(list[byte](dst, n), list[byte](src, n)) })
	}
	if err != nil || captured != 0 {
		return err
	}
	if err := l.d.StreamSynchronize(s); err != nil {
		return err
	}
	if from {
		copy(list[byte](dst, n), list[byte](src, n))
	}
	return nil
}
