//go:build !amd64

package mem

// Stream copies src to dst. They have the same length and do not overlap.
func Stream(dst, src []byte) { copy(dst, src) }
