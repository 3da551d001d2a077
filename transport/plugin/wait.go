package plugin

import (
	"runtime"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

const (
	// spinTime is how long a wait asks the plugin without a pause, if there is a core for it.
	spinTime = 50 * time.Microsecond
	// yieldTime is how long it then lets others run between two tries. Then it parks, and the
	// proxy asks for it.
	yieldTime = 500 * time.Microsecond
	// patience is how long it is parked before it looks at its Guard.
	patience = 20 * time.Millisecond
	// glance is how many tries are made before the Guard and the clock are looked at.
	glance = 16
)

// A waiter paces one wait: it spins, then yields, then parks.
type waiter struct {
	guard *fifo.Guard
	spin  bool
	tries int
	since int64 // fifo.Now at the first glance
}

// pause is called between two tries. It returns true when it is time to park.
func (w *waiter) pause() (park bool, err error) {
	w.tries++
	if w.tries%glance != 0 {
		if !w.spin {
			sysYield() // the peer may be on this very core
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
		sysYield()
		return false, nil
	}
	w.spin = false
	runtime.Gosched()
	if waited > spinTime+yieldTime {
		w.tries = glance - 1 // one look after each time
		return true, nil
	}
	return false, nil
}

// wait calls try, with mu held, until it is true. gone says what it means that the peer has
// parted; nil is nothing yet.
func (h *half) wait(try func() bool, gone func(parted error, ended bool) error) error {
	w := waiter{guard: h.t.cfg.Guard, spin: h.t.cfg.Spin}
	for {
		if err := h.alive(); err != nil {
			return err
		}
		parted, ended := h.ctl.why(), h.ctl.ended.Load() // before looking
		h.mu.Lock()
		done, err := try(), h.err
		h.mu.Unlock()
		if done {
			return nil
		}
		if parted != nil {
			if reason := gone(parted, ended); reason != nil {
				return reason
			}
		}
		if err != nil {
			return h.blame(err)
		}
		h.t.help()
		park, err := w.pause()
		if err != nil {
			return err
		}
		if park {
			h.park()
		}
	}
}

// park waits until the proxy has seen the connection go on, the peer parts, or it is time to
// look at the Guard.
func (h *half) park() {
	h.timer.Reset(patience)
	h.parked.Store(true)
	h.t.idlers.Add(1)
	h.t.stir()
	parted := h.ctl.parted
	if isClosed(parted) { // which is known: what was sent before is still to come
		parted = nil
	}
	select {
	case <-h.bell:
	case <-parted:
	case <-h.timer.C:
	}
	h.t.idlers.Add(-1)
	h.parked.Store(false)
}

// wake wakes who is parked.
func (h *half) wake() {
	if h.parked.Load() {
		select {
		case h.bell <- struct{}{}:
		default:
		}
	}
}
