package plugin

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport/internal/pace"
)

// closeTime is how long a plugin may take to close a connection; after an abort of the communicator it is abortTime.
const (
	closeTime = 5 * time.Second
	abortTime = 100 * time.Millisecond
)

// A half is the part that is common to both ends of a connection.
type half struct {
	t    *Transport
	dev  *Device
	peer int
	ctl  *control
	ring *ring
	max  int // payload of a slot

	setup  actor // makes the calls before and after the data
	mover  mover
	main   *queue     // headers, with the payloads unless those are placed
	direct *queue     // placed payloads, nil if the connection is not placed
	ended  bool       // the comms are closed; written by setup
	over   bool       // no more data are carried; written by Transport.data
	slots  mem.Region // of the caller, empty until registered, then fixed; read by Transport.data
	seen   bool       // received data are visible without a flush; read by Transport.data

	err    atomic.Pointer[error]  // of the plugin
	region atomic.Pointer[region] // in which slots lie

	busy    atomic.Bool   // sends are under way; counted in Transport.busy
	asked   atomic.Bool   // step is to be called once
	watched atomic.Bool   // the user of the end polls
	waiting atomic.Bool   // somebody waits for the bell
	bell    chan struct{} // rings for him
	timer   *time.Timer   // ends his wait

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
	t.open.Add(1)
	return h
}

// queues are the one or two queues of the connection.
func (h *half) queues() []*queue {
	if h.direct == nil {
		return []*queue{h.main}
	}
	return []*queue{h.main, h.direct}
}

// message is the memory, n bytes, of the slot's message in queue q.
func (h *half) message(q *queue, slot uint64, n int) registered {
	if q == h.direct {
		return registered{h.slots.Ptr() + uintptr(h.offset(slot)), n, q.mr}
	}
	return registered{h.ring.address(slot), n, q.mr}
}

// offset is where a slot begins in slots.
func (h *half) offset(slot uint64) int { return int(slot%uint64(h.t.cfg.Limits.Slots)) * h.max }

// result turns the result of function f into an error, nil for success.
func (h *half) result(f int, r Result) error {
	if r == 0 {
		return nil
	}
	return h.t.lib.error(f, h.dev, h.peer, r)
}

// blamed is the error of a call of function f that returned no failure, with the cause err.
func (h *half) blamed(f int, err error) error {
	e := h.t.lib.error(f, h.dev, h.peer, 0)
	e.Err = err
	return e
}

// fail remembers the error of a call on the data path.
func (h *half) fail(f int, r Result) { h.broke(h.result(f, r)) }

func (h *half) broke(err error) { h.err.Store(&err) }

// failure is why the plugin carries no more data, nil while it does.
func (h *half) failure() error {
	if p := h.err.Load(); p != nil {
		return *p
	}
	return nil
}

// alive is nil while the end may be used.
func (h *half) alive() error {
	if h.closed.Load() {
		return fifo.ErrClosed
	}
	return h.t.cfg.Guard.Aborted()
}

// blame is the error that the user of an end gets after the plugin failed with err.
func (h *half) blame(err error) error {
	if err := h.alive(); err != nil {
		return err
	}
	if err = h.ctl.verdict(err, h.t.cfg.Guard); h.closed.Load() {
		return fifo.ErrClosed
	}
	if h.ctl.why() == nil && !h.told.Swap(true) {
		_ = say(h.ctl.c, sayRefused, []byte(err.Error())) // the peer waits for nothing more
	}
	return err
}

// await waits for the result of closing, no longer than closeTime, or abortTime after an abort: a plugin that hangs in
// another function goes on in the background.
func (t *Transport) await(closed <-chan error) error {
	tick := time.NewTicker(pace.Patience)
	defer tick.Stop()
	for begun := time.Now(); ; {
		select {
		case err := <-closed:
			return err
		case <-tick.C:
		}
		limit := closeTime
		if t.cfg.Guard.Aborted() != nil {
			limit = abortTime
		}
		if time.Since(begun) > limit {
			t.lib.keep(t.log)
			return fmt.Errorf("the plugin has not returned from its function: not done in %v", limit)
		}
	}
}

// end has the comms closed by function closing, and closes the control stream.
func (h *half) end(closing int) {
	closed := make(chan error, 1)
	h.t.data.post(func() {
		h.over = true
		h.mover.step() // sets busy to false
		h.setup.post(func() { closed <- h.finally(closing) })
	})
	err := h.t.await(closed)
	h.said(err)
	h.ctl.c.Close()
	if r := h.region.Load(); r != nil {
		if err != nil {
			h.t.held.Store(true)
		}
		r.leave(err)
	}
}

// said logs that a part of the connection could not be closed.
func (h *half) said(err error) {
	if err != nil {
		h.t.log.Warn("plugin: close", "rank", h.t.cfg.Self.Rank, "peer", h.peer, "err", err)
	}
}

// finally closes the comms. Memory is freed unless the plugin may still use it.
func (h *half) finally(closing int) error {
	h.ended = true
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
	h.dev.conns.Add(-int32(len(h.queues())))
	h.t.open.Add(-1)
	return err
}
