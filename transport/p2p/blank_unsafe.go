package p2p

import "unsafe"

// clearPinned clears n bytes at p, which is no memory of Go's.
func clearPinned(p uintptr, n int) {
	clear(unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n))
}
