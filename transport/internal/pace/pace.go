// Package pace makes the waits of transports spin, then yield, then sleep. It is for transports
// whose ends poll by themselves; queues in shared memory have waits of their own (package fifo).
// The trap: a wait that sleeps must be woken, or look again after Patience.
package pace

import (
	"runtime"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

const (
	// Patience is how long a wait sleeps before it looks at its Guard.
	Patience = 20 * time.Millisecond
	// Yields is how long a wait yields its core between tries before it sleeps. To sleep and be
	// woken costs about 10 µs, so this is a few times that.
	Yields = 100 * time.Microsecond

	// spinTime is how long a wait tries without giving its core to other goroutines, if Spin is
	// set. A slot of 512 KiB takes about 50 µs over TCP on one host, 10 at 400 Gbit/s.
	spinTime = 50 * time.Microsecond
	// glance is how many tries go by between two looks at the clock and the Guard, which cost as
	// much as a try.
	glance = 16
)

// A Waiter paces one wait.
type Waiter struct {
	Guard *fifo.Guard
	Spin  bool          // there is a core for this wait
	Yield time.Duration // how long to yield before sleeping; 0 is Yields
	Slow  bool          // each try sleeps by itself, so every Pause looks at the clock

	tries int
	since int64 // fifo.Now at the first look
}

// Pause is called between two tries. It returns true when it is time to sleep. The error is the
// Guard's. Waits of a few tries look at no clock.
func (w *Waiter) Pause() (sleep bool, err error) {
	w.tries++
	if w.tries%glance != 0 && !w.Slow {
		if !w.Spin {
			yield() // the peer may be on this very core
		}
		return false, nil
	}
	if err := w.Guard.Err(); err != nil {
		return false, err
	}
	now := fifo.Now()
	if w.since == 0 {
		w.since = now
		w.Guard.Waits(now)
	}
	waited := time.Duration(now - w.since)
	if w.Spin && waited < spinTime {
		yield()
		return false, nil
	}
	w.Spin = false
	runtime.Gosched() // costs more than yielding the thread: it may start another
	most := w.Yield
	if most == 0 {
		most = Yields
	}
	if waited > spinTime+most {
		w.tries = glance - 1 // one look after each sleep
		return true, nil
	}
	return false, nil
}
