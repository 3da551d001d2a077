//go:build (!amd64 && !arm64) || race

package fifo

import "sync/atomic"

func pause() {}

func storeRelease(p *atomic.Uint64, v uint64) { p.Store(v) } // the race detector understands Store
