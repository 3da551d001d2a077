package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
)

// closeTime is how long a plugin may take to close a connection.
const closeTime = 5 * time.Second

// A half is what both ends of a connection have.
type half struct {
	t    *Transport
	dev  *Device
	peer int
	ctl  *control
	ring *ring
	max  int // payload of a slot

	mu     sync.Mutex // around calls of the plugin
	main   *queue     // headers, with the payloads unless those are placed; under mu
	direct *queue     // placed payloads, nil if the connection is not placed; under mu
	slots  mem.Region // of the caller, empty before they are known; under mu
	seen   bool       // what has come there is seen at once, without a flush; under mu
	over   bool       // the comms are closed; under mu
	err    error      // of the plugin; under mu

	region atomic.Pointer[region] // in which slots lie

	bell   chan struct{} // what the parked wait for
	timer  *time.Timer   // of the parked
	parked atomic.Bool

	closed atomic.Bool
	told   atomic.Bool // the peer was told of err
}

func newHalf(t *Transport, dev *Device, peer int, c net.Conn, placed bool) *half {
	l := t.cfg.Limits
	queue := func(most int) *queue {
		return newQueue(newCaller(&t.lib.table, t.ctx, dev.Index), min(l.Slots, most))
	}
	h := &half{
		t: t, dev: dev, peer: peer, ctl: newControl(c), max: l.SlotBytes, main: queue(maxRequests),
		bell: make(chan struct{}, 1), timer: time.NewTimer(0),
	}
	if placed {
		h.direct = queue(maxRequests - 1) // and a flush
		l.SlotBytes = 0                   // headers only
	}
	h.ring = newRing(l)
	h.timer.Stop()
	return h
}

// queues are those that the connection has.
func (h *half) queues() []*queue {
	if h.direct == nil {
		return []*queue{h.main}
	}
	return []*queue{h.main, h.direct}
}

// message is n bytes of a queue's message of a slot.
func (h *half) message(q *queue, slot uint64, n int) registered {
	if q == h.direct {
		return registered{h.slots.Ptr() + uintptr(h.offset(slot)), n, q.mr}
	}
	return registered{h.ring.address(slot), n, q.mr}
}

// offset is where a slot begins in slots.
func (h *half) offset(slot uint64) int { return int(slot%uint64(h.t.cfg.Limits.Slots)) * h.max }

// result is an error for what a function has returned.
func (h *half) result(f int, r Result) error {
	if r == 0 {
		return nil
	}
	return h.t.lib.error(f, h.dev, h.peer, r)
}

// blamed is the error of a call that did not say that it failed.
func (h *half) blamed(f int, err error) error {
	e := h.t.lib.error(f, h.dev, h.peer, 0)
	e.Err = err
	return e
}

// fail remembers the error of a call on the data path.
func (h *half) fail(f int, r Result) { h.err = h.result(f, r) }

// alive is nil while the end may be used.
func (h *half) alive() error {
	if h.closed.Load() {
		return fifo.ErrClosed
	}
	return h.t.cfg.Guard.Aborted()
}

// blame is the error of an end whose plugin has failed.
func (h *half) blame(err error) error {
	if err := h.alive(); err != nil {
		return err
	}
	if err = h.ctl.verdict(err); h.closed.Load() {
		return fifo.ErrClosed
	}
	if h.ctl.why() == nil && !h.told.Swap(true) {
		_ = say(h.ctl.c, sayRefused, []byte(err.Error())) // the peer waits for nothing more
	}
	return err
}

// closing carries out f with mu held. A plugin that has not returned from another function keeps it
// from that; then it goes on in the background.
func (h *half) closing(f func() error) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeTime, fmt.Errorf("not done in %v", closeTime))
	defer cancel()
	_, err := abandon(ctx, func() (struct{}, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return struct{}{}, f()
	}, func(struct{}) {})
	if err != nil {
		h.t.log.Warn("plugin: close", "rank", h.t.cfg.Self.Rank, "peer", h.peer, "err", err)
	}
	return err
}

// end closes the comms by the function that does, and the control stream.
func (h *half) end(closing int) {
	err := h.closing(func() error {
		h.over = true
		var errs []error
		for _, q := range h.queues() {
			errs = append(errs, q.close(h, closing)...)
		}
		err := errors.Join(errs...)
		if err == nil {
			h.ring.free()
		} else {
			h.t.lib.keep(h.t.log, h.ring, h.main.call, h.direct)
		}
		return err
	})
	h.ctl.c.Close()
	h.dev.conns.Add(-int32(len(h.queues())))
	if r := h.region.Load(); r != nil {
		r.leave(err)
	}
}
