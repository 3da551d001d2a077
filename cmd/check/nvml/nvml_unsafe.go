package nvml

import "unsafe"

// addressOf is the address of a variable, which it puts on the heap: a stack may move before C has written
// there. The caller uses the variable after the call, which keeps it.
func addressOf[T any](p *T) uintptr {
	if escapes != nil {
		escapes <- p
	}
	return uintptr(unsafe.Pointer(p))
}

// escapes is always nil, and the compiler does not know.
var escapes chan any
