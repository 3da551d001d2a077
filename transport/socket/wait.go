package socket

import (
	"runtime"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

const (
	// spinTime is how long a wait tries without yielding its core, if there is a core
	// for it. A slot of 512 KiB takes about 50 µs on one host.
	spinTime = 50 * time.Microsecond
	// yieldTime is how long it then lets others run between two tries. Sleeping
	// and waking cost about 10 µs, so a few of those.
	yieldTime = 100 * time.Microsecond
	// patience is how long it then sleeps before it looks at its Guard.
	patience = 20 * time.Millisecond
)

// A waiter paces one wait: it spins, then yields, then sleeps.
type waiter struct {
	guard *fifo.Guard
	spin  bool
	tries int
	since int64 // fifo.Now at the first try
}

// pause is called between two tries. It returns true when it is time to sleep.
// Waits of a few tries look at no clock.
func (w *waiter) pause() (sleep bool, err error) {
	w.tries++
	if w.tries%glance == 0 {
		if err := w.guard.Err(); err != nil {
			return false, err
		}
		now := fifo.Now()
		if w.since == 0 {
			w.since = now
		}
		waited := time.Duration(now - w.since)
		if w.spin && waited < spinTime {
			sysYield() // the peer may be on this very core
			return false, nil
		}
		w.spin = false
		runtime.Gosched() // costs more than yielding the thread: it may start another
		if waited > spinTime+yieldTime {
			w.tries = glance - 1 // one look after each sleep
			return true, nil
		}
	}
	if !w.spin {
		sysYield()
	}
	return false, nil
}
