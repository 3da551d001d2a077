package plugin

import (
	"time"

	"github.com/ringo-go/ringo/transport/internal/pace"
)

// ask makes the actor call step once.
func (h *half) ask() {
	h.asked.Store(true)
	h.t.data.ask()
}

// want makes the actor poll for a while.
func (h *half) want() {
	h.t.fresh.Store(true)
	h.ask()
}

// look makes the actor call step once more, and waits for the end of that call.
func (h *half) look() error {
	done := make(chan struct{})
	h.t.data.post(func() {
		h.mover.step()
		close(done)
	})
	tick := time.NewTicker(pace.Patience)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-tick.C:
		}
		if err := h.alive(); err != nil {
			return err
		}
		if err := h.t.cfg.Guard.Err(); err != nil {
			return err
		}
	}
}

// wait waits until done is true. Once the peer has left, gone decides: an error ends the wait, nil goes on.
func (h *half) wait(done func() bool, gone func(parted error, ended bool) error) error {
	defer h.waiting.Store(false)
	for tries := 1; ; tries++ {
		if err := h.alive(); err != nil {
			return err
		}
		parted, ended, failed := h.ctl.why(), h.ctl.ended.Load(), h.failure() // read before done
		if parted != nil {
			if err := h.look(); err != nil {
				return err
			}
		}
		if done() {
			return nil
		}
		if parted != nil {
			if reason := gone(parted, ended); reason != nil {
				return reason
			}
		}
		if failed != nil {
			return h.blame(failed)
		}
		if h.park(done) && tries%glance != 0 {
			continue // without a look at the clock
		}
		if err := h.t.cfg.Guard.Err(); err != nil {
			return err
		}
	}
}

// glance is the number of wakes between two looks at the Guard's deadline.
const glance = 16

// park waits until the connection makes progress, the peer parts, or it is time to look at the Guard. It reports
// whether there was progress.
func (h *half) park(done func() bool) bool {
	parted := h.ctl.parted
	if isClosed(parted) { // the wait knows that: slots sent before may still come
		parted = nil
	}
	if !h.waiting.Swap(true) {
		h.want()
	}
	if done() || h.failure() != nil || h.closed.Load() { // it happened before waiting was set, so nobody rings
		return true
	}
	h.timer.Reset(pace.Patience)
	select {
	case <-h.bell:
		return true
	case <-parted:
	case <-h.timer.C:
	}
	return false
}

// wake wakes the goroutine that waits. It reports whether there was one.
func (h *half) wake() bool {
	if !h.waiting.Swap(false) {
		return false
	}
	select {
	case h.bell <- struct{}{}:
	default:
	}
	return true
}
