package host

import (
	"unsafe"

	"github.com/ringo-go/ringo/mem"
)

// memory is n bytes of C's memory. They are none of Go's heap, so that an address is enough.
func memory(at uintptr, n int) mem.Region {
	if n == 0 || at == 0 {
		return mem.Region{}
	}
	return mem.Host(unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), n))
}
