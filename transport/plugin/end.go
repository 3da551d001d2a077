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
	main   *queue     // headers and payloads that are copied; under mu
	direct *queue     // payloads of registered memory, nil for none; under mu
	over   bool       // the comms are closed; under mu
	err    error      // of the plugin; under mu

	bell   chan struct{} // what the parked wait for
	timer  *time.Timer   // of the parked
	parked atomic.Bool

	closed atomic.Bool
	told   atomic.Bool // the peer was told of err
}

func newHalf(t *Transport, dev *Device, peer int, c net.Conn, direct bool) *half {
	queue := func() *queue { return newQueue(newCaller(&t.lib.table, t.ctx, dev.Index), t.cfg.Limits.Slots) }
	h := &half{
		t: t, dev: dev, peer: peer, ctl: newControl(c), max: t.cfg.Limits.SlotBytes, ring: newRing(t.cfg.Limits), main: queue(),
		bell: make(chan struct{}, 1), timer: time.NewTimer(0),
	}
	if direct {
		h.direct = queue()
	}
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

// place is the message of a slot in the ring, as registered with q.
func (h *half) place(q *queue, slot uint64, from, n int) span {
	return span{h.ring.address(slot) + uintptr(from), n, q.ring}
}

// register has the plugin register the ring.
func (h *half) register(ctx context.Context) error {
	_, err := abandon(ctx, func() (struct{}, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, q := range h.queues() {
			mr, r := q.call.register(h.ring.base(), len(h.ring.memory), hostMemory)
			if r != 0 {
				return struct{}{}, h.result(fnRegMr, r)
			}
			q.ring = mr
		}
		return struct{}{}, nil
	}, func(struct{}) {})
	return err
}

// result is an error for what a function has returned.
func (h *half) result(f int, r Result) error {
	if r == 0 {
		return nil
	}
	return h.t.lib.error(f, h.dev, h.peer, r)
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

// end closes the comms by the function that does, and the control stream.
func (h *half) end(closing int) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeTime, fmt.Errorf("not done in %v", closeTime))
	defer cancel()
	_, err := abandon(ctx, func() (struct{}, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.over = true
		var errs []error
		for _, q := range h.queues() {
			errs = append(errs, q.close(h, closing)...)
		}
		h.ring.free()
		return struct{}{}, errors.Join(errs...)
	}, func(struct{}) {})
	if err != nil {
		h.t.log.Warn("plugin: close", "rank", h.t.cfg.Self.Rank, "peer", h.peer, "err", err)
	}
	h.ctl.c.Close()
	h.dev.conns.Add(-1)
}
