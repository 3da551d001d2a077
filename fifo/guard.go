package fifo

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// A Guard ends waits: every wait in this library looks at one. It carries the
// deadline of the operation under way and the reason of an abort. All methods
// may be called from any goroutine; the zero Guard never ends a wait.
type Guard struct {
	deadline atomic.Int64 // nanoseconds since base, 0 for none
	cause    atomic.Pointer[error]
}

// ErrDeadline is what a wait returns when the deadline of its operation has
// passed. It is os.ErrDeadlineExceeded, as in package net.
var ErrDeadline = os.ErrDeadlineExceeded

// ErrClosed is what a wait returns when its queue or connection was closed.
var ErrClosed = errors.New("connection closed")

var base = time.Now()

// Now is a monotonic clock in nanoseconds, the clock of SetDeadline.
func Now() int64 { return int64(time.Since(base)) + 1 }

// SetDeadline sets the time (of Now) after which waits fail; 0 is none.
func (g *Guard) SetDeadline(t int64) { g.deadline.Store(t) }

// Abort makes all present and future waits return cause. The first one stays.
func (g *Guard) Abort(cause error) { g.cause.CompareAndSwap(nil, &cause) }

// Err is nil while waits may go on.
func (g *Guard) Err() error {
	if p := g.cause.Load(); p != nil {
		return *p
	}
	if t := g.deadline.Load(); t != 0 && Now() > t {
		return ErrDeadline
	}
	return nil
}
