//go:build (!amd64 && !arm64) || race

package fifo

import "sync/atomic"

// pause does nothing where there is no instruction for it, and under the race detector.
func pause() {}

func storeRelease(p *atomic.Uint64, v uint64) { p.Store(v) } // the race detector understands Store
