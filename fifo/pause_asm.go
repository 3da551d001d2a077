//go:build amd64 || arm64

package fifo

// pause tells the processor that a loop spins on memory.
func pause()
