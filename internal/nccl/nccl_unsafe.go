package nccl

import "unsafe"

// addressOf is the address of memory that C writes to during the call it is an
// argument of; the variable is kept on the heap by its escape.
func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }
