package nvml

import "unsafe"

// addressOf is the address of a variable, and makes the compiler put the variable on the heap: a stack may move before
// C has written there. The caller must use the variable after the call of C, which keeps it alive.
func addressOf[T any](p *T) uintptr {
	if escapes != nil {
		escapes <- p
	}
	return uintptr(unsafe.Pointer(p))
}

// escapes is always nil, and the compiler does not know.
var escapes chan any
