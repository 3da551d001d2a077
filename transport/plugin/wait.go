package plugin

import (
	"runtime"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

const (
	// spinTime is how long a wait asks the plugin without a pause, if there is a core for it.
	spinTime = 50 * time.Microsecond
	// yieldTime is how long it then lets others run between two tries.
	yieldTime = 500 * time.Microsecond
	// minPause and maxPause are how long it then sleeps: plugins cannot wake anybody.
	minPause = 50 * time.Microsecond
	maxPause = 2 * time.Millisecond
	// glance is how many tries are made before the Guard and the clock are looked at.
	glance = 16
)

// A waiter paces one wait: it spins, then yields, then sleeps.
type waiter struct {
	guard *fifo.Guard
	spin  bool
	tries int
	since int64         // fifo.Now at the first glance
	sleep time.Duration // 0 before the first
}

// pause is called between two tries.
func (w *waiter) pause() error {
	w.tries++
	if w.sleep == 0 && w.tries%glance != 0 {
		if !w.spin {
			sysYield() // the peer may be on this very core
		}
		return nil
	}
	if err := w.guard.Err(); err != nil {
		return err
	}
	if w.sleep > 0 {
		nap(w.sleep)
		w.sleep = min(2*w.sleep, maxPause)
		return nil
	}
	now := fifo.Now()
	if w.since == 0 {
		w.since = now
	}
	waited := time.Duration(now - w.since)
	w.spin = w.spin && waited < spinTime
	if waited > spinTime+yieldTime {
		w.sleep = minPause
	}
	runtime.Gosched()
	return nil
}
