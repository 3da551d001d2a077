//go:build (amd64 || arm64) && !purego

package goroutine

// ID identifies the calling goroutine among those that live. It is the address of the runtime's record of it.
func ID() uintptr
