package fifo

import "unsafe"

// addressOf is the address of a slice's memory.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
