package verbs

import (
	"runtime"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

const (
	// glance is how many tries there are between two looks at the clock. A try takes
	// about 0.1 µs a rail.
	glance = 16
	// spinTime is how long a wait tries without giving its core away, if there is a core
	// for it. A slot of 512 KiB takes 10 µs at 400 Gbit/s.
	spinTime = 50 * time.Microsecond
	// yieldTime is how long it then lets others run between two tries. Sleeping and
	// waking cost about 10 µs, so a few of those.
	yieldTime = 100 * time.Microsecond
	// patience is how long it then sleeps before it looks around.
	patience = 20 * time.Millisecond
)

// A waiter paces one wait: it spins, then yields, then sleeps.
type waiter struct {
	guard *fifo.Guard
	spin  bool
	tries int
	since int64 // fifo.Now at the first look
}

// pause is called between two tries. It returns true when it is time to sleep.
func (w *waiter) pause() (sleep bool, err error) {
	w.tries++
	if w.tries%glance != 0 {
		if !w.spin {
			sysYield()
		}
		return false, nil
	}
	if err := w.guard.Err(); err != nil {
		return false, err
	}
	now := fifo.Now()
	if w.since == 0 {
		w.since = now
	}
	waited := time.Duration(now - w.since)
	if w.spin && waited < spinTime {
		return false, nil
	}
	w.spin = false
	if waited > spinTime+yieldTime {
		w.tries = glance - 1 // one look after each sleep
		return true, nil
	}
	runtime.Gosched()
	return false, nil
}
