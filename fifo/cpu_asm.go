//go:build (amd64 || arm64) && !race

package fifo

import "sync/atomic"

// pause tells the processor that a loop spins on memory.
//
//go:noescape
func pause()

// storeRelease stores v after all earlier loads and stores. Unlike Store it does not
// wait until other cores can see v, which takes as long as a cache line travels.
//
//go:noescape
func storeRelease(p *atomic.Uint64, v uint64)
