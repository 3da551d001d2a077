package plugin

import (
	"time"

	"github.com/ringo-go/ringo/transport/internal/pace"
)

// yieldTime is how long a wait lets others run between two tries. Then it parks, and the proxy asks
// for it.
const yieldTime = 500 * time.Microsecond

// wait calls try, with mu held, until it is true. Once the peer has left, gone
// decides: an error ends the wait, nil goes on.
func (h *half) wait(try func() bool, gone func(parted error, ended bool) error) error {
	w := pace.Waiter{Guard: h.t.cfg.Guard, Spin: h.t.cfg.Spin, Yield: yieldTime}
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
		park, err := w.Pause()
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
	h.timer.Reset(pace.Patience)
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
