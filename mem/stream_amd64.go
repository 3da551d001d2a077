package mem

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:noescape
func stream(dst, src unsafe.Pointer, n int)

// Stream copies src to dst, which are as long and do not overlap, past the
// caches: dst is not read first and pushes nothing else out. It is for results
// so large that they would not stay in the cache anyway; a third of the memory
// traffic of a copy falls away.
func Stream(dst, src []byte) {
	const line, block = 64, 256
	if len(dst) < 16*block || !cpu.X86.HasAVX2 {
		copy(dst, src)
		return
	}
	head := int(-uintptr(unsafe.Pointer(&dst[0])) % line)
	copy(dst[:head], src)
	n := (len(dst) - head) / block * block
	stream(unsafe.Pointer(&dst[head]), unsafe.Pointer(&src[head]), n)
	copy(dst[head+n:], src[head+n:])
}
