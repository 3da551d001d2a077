// Package mem has Region, an extent of host or device memory, for all packages that move data. The trap: Bytes panics
// for device memory, see IsHost.
package mem

import (
	"fmt"
	"unsafe"
)

// A Region is an extent of host or device memory. The zero Region is empty host
// memory. Regions are values; slicing one never allocates.
type Region struct {
	host unsafe.Pointer // host memory; keeps it alive
	addr uintptr        // device memory
	n    int
	dev  int32 // device number + 1, 0 for host
}

// Host is the Region of a Go slice.
func Host(b []byte) Region {
	return Region{host: unsafe.Pointer(unsafe.SliceData(b)), n: len(b)}
}

// Device is n bytes at address addr of device dev.
func Device(dev int, addr uintptr, n int) Region {
	return Region{addr: addr, n: n, dev: int32(dev) + 1}
}

// Of is the Region of a slice of fixed-size values without pointers.
func Of[T any](s []T) Region {
	var zero T
	return Region{host: unsafe.Pointer(unsafe.SliceData(s)), n: len(s) * int(unsafe.Sizeof(zero))}
}

// Len is the length in bytes.
func (r Region) Len() int { return r.n }

// IsHost reports whether the memory is the host's.
func (r Region) IsHost() bool { return r.dev == 0 }

// IsNil reports whether the Region points nowhere.
func (r Region) IsNil() bool { return r.host == nil && r.addr == 0 }

// Dev is the device number, -1 for host memory.
func (r Region) Dev() int { return int(r.dev) - 1 }

// Ptr is the address, on the host or on the device.
func (r Region) Ptr() uintptr {
	if r.dev == 0 {
		return uintptr(r.host)
	}
	return r.addr
}

// Bytes is host memory as a slice. It panics for device memory.
func (r Region) Bytes() []byte {
	if r.dev != 0 {
		panic("mem: Bytes of device memory")
	}
	return unsafe.Slice((*byte)(r.host), r.n)
}

// Slice is n bytes from offset off. It panics when they are not inside.
func (r Region) Slice(off, n int) Region {
	if off < 0 || n < 0 || off > r.n-n {
		panic(fmt.Sprintf("mem: slice [%d:+%d] of %d bytes", off, n, r.n))
	}
	s := Region{n: n, dev: r.dev}
	if r.dev != 0 {
		s.addr = r.addr + uintptr(off)
	} else if r.host != nil {
		s.host = unsafe.Add(r.host, off)
	}
	return s
}

// Overlaps reports whether two Regions share a byte.
func (r Region) Overlaps(o Region) bool {
	return r.dev == o.dev && r.n > 0 && o.n > 0 &&
		r.Ptr() < o.Ptr()+uintptr(o.n) && o.Ptr() < r.Ptr()+uintptr(r.n)
}
