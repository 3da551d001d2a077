//go:build !linux

package fifo

import (
	"runtime"
	"sync/atomic"
	"time"
)

// sharedParker has no futex here: it looks again every now and then.
type sharedParker struct{}

func (sharedParker) yield() { runtime.Gosched() }
func (sharedParker) move()  {}

func (sharedParker) park(state *atomic.Uint32, d time.Duration) {
	for end := Now() + int64(d); state.Load() == parked && Now() < end; {
		time.Sleep(100 * time.Microsecond)
	}
}

func (sharedParker) wake(*atomic.Uint32) {}
