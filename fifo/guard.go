package fifo

import (
	"errors"
	"math"
	"os"
	"sync/atomic"
	"time"
)

// A Guard ends waits: every wait in this library looks at one. It carries the
// deadline of the operation under way and the reason of an abort. All methods
// but OnSlow may be called from any goroutine; the zero Guard never ends a wait.
//
// Reading a clock costs as much as a small message. So the clock of an operation
// does not start with Begin but with the first wait that is long enough to ask
// for Err: an operation without such a wait reads no clock.
type Guard struct {
	cause    atomic.Pointer[error]
	deadline atomic.Int64 // a time of Now; 0 is none; −timeout while the clock has not started
	slowAt   atomic.Int64 // a time of Now at which to call slow; 0 is never
	since    atomic.Int64 // a time of Now: when the clock of the last operation with a long wait started
	still    atomic.Int64 // a time of Now: when the last long wait began, that is, when data moved last
	polled   atomic.Int64 // a time of Now: when Err was asked last, 10 ms less at most

	slow  func()
	after time.Duration // how long after the start of the clock slow is called
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

// forever is a timeout of 146 years: Now plus it does not overflow.
const forever = math.MaxInt64 / 2

// Begin starts an operation whose waits may take timeout in all; 0 is for ever.
func (g *Guard) Begin(timeout time.Duration) {
	if timeout <= 0 || timeout > forever {
		timeout = forever
	}
	if g.deadline.Load() != -int64(timeout) {
		g.slowAt.Store(0)
		g.deadline.Store(-int64(timeout))
	}
}

// Extend gives the operation that Begin started another timeout, which counts from the same start; 0 is
// for ever. It may be called while other goroutines wait.
func (g *Guard) Extend(timeout time.Duration) {
	if timeout <= 0 || timeout > forever {
		timeout = forever
	}
	for {
		t := g.deadline.Load()
		later := -int64(timeout)
		if t > 0 {
			later = g.since.Load() + int64(timeout)
		}
		if t == 0 || g.deadline.CompareAndSwap(t, later) {
			return
		}
	}
}

// End ends the operation that Begin started, so that its deadline and its OnSlow do not
// concern waits before the next Begin. After an operation without a long wait there is
// nothing to do, and End costs one load.
func (g *Guard) End() {
	if g.deadline.Load() > 0 {
		g.slowAt.Store(0)
		g.deadline.Store(0)
	}
}

// Waited is how long the operation under way has waited, 0 if there is none or its clock
// has not started.
func (g *Guard) Waited() time.Duration {
	if g.deadline.Load() <= 0 {
		return 0
	}
	return time.Duration(Now() - g.since.Load())
}

// Waits says that a long wait begins at a time of Now. One that ends at once, as the operation has, is none.
func (g *Guard) Waits(now int64) {
	if t := g.deadline.Load(); (t <= 0 || now <= t) && g.cause.Load() == nil {
		g.still.Store(now)
	}
}

// Still is for how much of Waited the operation's data have not moved. A process that did not run for a while, on a
// busy machine, knows nothing of the time before.
func (g *Guard) Still() time.Duration {
	return max(0, min(g.Waited(), time.Duration(Now()-g.still.Load())))
}

// starved is how long a waiting process has not asked for Err if it did not run: else it asks every 100 ms.
const starved = 500 * time.Millisecond

// OnSlow makes the first wait that finds an operation's clock older than after
// call f, once for each Begin. f is called by the goroutine that waits, within
// 100 ms after it is due; it must return soon and must not wait with this Guard.
// OnSlow is called before the Guard is used.
func (g *Guard) OnSlow(after time.Duration, f func()) { g.after, g.slow = after, f }

// Abort makes all present and future waits return cause. The first cause stays.
func (g *Guard) Abort(cause error) { g.cause.CompareAndSwap(nil, &cause) }

// Aborted is the cause given to Abort, nil if there was none.
func (g *Guard) Aborted() error {
	if p := g.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// Err is nil while waits may go on, else the cause of the abort or ErrDeadline. A wait asks
// at least every 100 ms.
func (g *Guard) Err() error {
	if err := g.Aborted(); err != nil {
		return err
	}
	t := g.deadline.Load()
	if t == 0 {
		return nil
	}
	now := Now()
	if t < 0 {
		if g.deadline.CompareAndSwap(t, now-t) {
			g.since.Store(now)
			g.polled.Store(now)
			if g.slow != nil {
				g.slowAt.Store(now + int64(g.after))
			}
		}
		return nil
	}
	if away := now - g.polled.Load(); away > int64(10*time.Millisecond) { // seldom: others read this line of the cache
		if away > int64(starved) {
			g.still.Store(now)
		}
		g.polled.Store(now)
	}
	if now > t {
		return ErrDeadline
	}
	if at := g.slowAt.Load(); at != 0 && now >= at && g.slowAt.CompareAndSwap(at, 0) {
		g.slow()
	}
	return nil
}
