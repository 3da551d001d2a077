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
	// deadline is a time of Now, or 0 for none, or −timeout while nobody has
	// waited yet: reading a clock costs as much as a small message, so the clock
	// of an operation starts with the first wait long enough to ask for Err.
	deadline atomic.Int64
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

// Begin starts an operation whose waits may take timeout in all, counted from
// the first one that is long enough to look at a clock; 0 is for ever.
func (g *Guard) Begin(timeout time.Duration) {
	if g.deadline.Load() != -int64(timeout) {
		g.deadline.Store(-int64(timeout))
	}
}

// Abort makes all present and future waits return cause. The first one stays.
func (g *Guard) Abort(cause error) { g.cause.CompareAndSwap(nil, &cause) }

// Aborted is the cause given to Abort, nil if there was none.
func (g *Guard) Aborted() error {
	if p := g.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// Err is nil while waits may go on.
func (g *Guard) Err() error {
	if err := g.Aborted(); err != nil {
		return err
	}
	switch t := g.deadline.Load(); {
	case t < 0:
		g.deadline.CompareAndSwap(t, Now()-t)
	case t > 0 && Now() > t:
		return ErrDeadline
	}
	return nil
}
