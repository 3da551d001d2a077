//go:build !amd64

package mem

// Stream copies src to dst. Both must have the same length and not overlap.
func Stream(dst, src []byte) { copy(dst, src) }
