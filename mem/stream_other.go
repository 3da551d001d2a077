//go:build !amd64

package mem

// Stream copies src to dst, which are as long and do not overlap.
func Stream(dst, src []byte) { copy(dst, src) }

// Fence orders what Stream has stored.
func Fence() {}
