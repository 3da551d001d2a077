package host

import (
	"unsafe"

	"github.com/ringo-go/ringo/mem"
)

// memory is n bytes of C's memory, which lies outside of Go's heap, so that an address keeps it valid.
func memory(at uintptr, n int) mem.Region {
	if n == 0 || at == 0 {
		return mem.Region{}
	}
	return mem.Host(unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), n))
}
