package cuda

import (
	"maps"
	"sync"
	"sync/atomic"
)

// paramSizes are the bytes of kernels' parameters. A driver accepts a launch with fewer
// bytes and reads whatever follows them, so each launch checks. A lookup takes no lock;
// an insertion copies the map.
type paramSizes struct {
	adding sync.Mutex
	sizes  atomic.Pointer[map[Function]int]
}

// of is the size for a kernel; false if it is not known.
func (s *paramSizes) of(f Function) (int, bool) {
	m := s.sizes.Load()
	if m == nil {
		return 0, false
	}
	n, ok := (*m)[f]
	return n, ok
}

// set notes the size for a kernel, or that it is not known. The handle of an unloaded
// kernel may be given to another one.
func (s *paramSizes) set(f Function, n int, known bool) {
	s.adding.Lock()
	defer s.adding.Unlock()
	if old, had := s.of(f); had == known && old == n {
		return
	}
	m := map[Function]int{}
	if old := s.sizes.Load(); old != nil {
		m = maps.Clone(*old)
	}
	if known {
		m[f] = n
	} else {
		delete(m, f)
	}
	s.sizes.Store(&m)
}

// paramBytes asks the driver for the size, which drivers know since CUDA 12.4.
func (d *libcuda) paramBytes(f Function) (n int, known bool) {
	fn, err := d.addr(cuFuncGetParamInfo)
	if err != nil {
		return 0, false
	}
	for i := range uintptr(maxArgs) {
		offset, size, r := invoke(fn, 2, 2, []uintptr{uintptr(f), i})
		if r != 0 { // ErrInvalidValue when there is no such parameter
			return n, r == ErrInvalidValue
		}
		n = int(offset + size)
	}
	return 0, false
}
