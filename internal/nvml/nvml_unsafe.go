package nvml

import "unsafe"

// addressOf is the address of memory on the heap, where its escape puts it. The caller uses
// the variable after the call that the address is given to, which keeps it.
func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }
