package nccl

import "unsafe"

// addressOf is the address of memory that C writes to during a call. It puts the variable on
// the heap, for a stack may move before C has written. The caller uses the variable after the
// call, which keeps it alive.
func addressOf[T any](p *T) uintptr {
	if escapes != nil {
		escapes <- p
	}
	return uintptr(unsafe.Pointer(p))
}

// escapes is always nil, but the compiler cannot know.
var escapes chan any
