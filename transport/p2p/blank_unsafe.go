package p2p

import "unsafe"

// clearPinned clears memory outside of Go's.
func clearPinned(p uintptr, n int) {
	clear(unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n))
}
