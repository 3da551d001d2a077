package grid

import "unsafe"

// pinnedAt returns a value in pinned host memory.
func pinnedAt[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// pinnedSlice returns n values in pinned host memory.
func pinnedSlice[T any](p uintptr, n int) []T { return unsafe.Slice(pinnedAt[T](p), n) }
