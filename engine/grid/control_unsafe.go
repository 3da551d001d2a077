package grid

import (
	"sync/atomic"
	"unsafe"
)

// pinned is pinned host memory as a slice.
func pinned(p uintptr, n int) []byte { return unsafe.Slice((*byte)(pointer(p)), n) }

// ringAt is pinned host memory as words.
func ringAt(p uintptr, words int) []uint64 { return unsafe.Slice((*uint64)(pointer(p)), words) }

func awaitedAt(p uintptr, ranks int) []atomic.Uint32 {
	return unsafe.Slice((*atomic.Uint32)(pointer(p)), ranks)
}

func wordsAt(p uintptr) *controlWords { return (*controlWords)(pointer(p)) }

// pointer is an address outside of Go's memory.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
