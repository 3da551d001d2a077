package plugin

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A recvConn is the receiving end. A receive is posted for every slot that is free.
type recvConn struct {
	*half
	held     bool          // a slot was given by Next
	released atomic.Uint64 // slots that the caller has consumed; written by the receiver
	sizes    []int         // of messages, by slot; under mu
	posted   uint64        // receives that the plugin has taken; under mu
	arrived  atomic.Uint64 // slots that it has received; written under mu
}

func newRecvConn(h *half) *recvConn {
	return &recvConn{half: h, sizes: make([]int, h.t.cfg.Limits.Slots)}
}

// Next waits for the next slot.
func (c *recvConn) Next() (mem.Region, transport.Stamp, error) {
	if c.held {
		return mem.Region{}, transport.Stamp{}, errors.New("plugin: next without release")
	}
	slot := c.released.Load()
	if err := c.wait(slot); err != nil {
		return mem.Region{}, transport.Stamp{}, err
	}
	b := c.ring.at(slot)
	n, stamp, err := parseHeader(b, slot, c.sizes[slot%uint64(len(c.sizes))])
	if err != nil {
		return mem.Region{}, transport.Stamp{}, c.t.lib.failed("irecv", err)
	}
	c.held = true
	return mem.Host(b[headerLen:][:n]), stamp, nil
}

// Release gives the slot of the last Next back: the plugin may receive into it.
func (c *recvConn) Release() error {
	if !c.held {
		return errors.New("plugin: release without next")
	}
	c.held = false
	if c.closed.Load() {
		return fifo.ErrClosed
	}
	c.mu.Lock()
	c.released.Add(1)
	if !c.over && c.err == nil {
		c.post()
	}
	c.mu.Unlock()
	return nil // an error shows at Next
}

// wait waits until the slot has arrived.
func (c *recvConn) wait(slot uint64) error {
	if err := c.alive(); err != nil {
		return err
	}
	w := waiter{guard: c.t.cfg.Guard, spin: c.t.cfg.Spin}
	for {
		parted, ended := c.ctl.why(), c.ctl.ended.Load() // before looking
		err := c.progress()
		switch {
		case c.arrived.Load() > slot:
			return nil
		case parted == fifo.ErrClosed && slot >= c.ctl.last:
			return fifo.ErrClosed
		case err != nil:
			return c.blame(err)
		case parted == fifo.ErrClosed && ended:
			return fmt.Errorf("the peer has gone: it published %d slots and %d have arrived", c.ctl.last, slot)
		case parted != nil && parted != fifo.ErrClosed:
			return parted
		}
		c.t.help()
		park, err := w.pause()
		if err != nil {
			return err
		}
		if park {
			c.park()
		}
		if c.closed.Load() {
			return fifo.ErrClosed
		}
	}
}

// try is part of mover. Receives of which nobody waits for one are left for later.
func (c *recvConn) try() bool {
	if !c.parked.Load() || !c.mu.TryLock() {
		return false
	}
	moved, err := c.carryOn()
	c.mu.Unlock()
	if moved || err != nil {
		c.wake()
	}
	return moved
}

// progress posts what can be posted and asks what has arrived.
func (c *recvConn) progress() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.carryOn()
	return err
}

// carryOn is progress with mu held. It reports whether anything arrived.
func (c *recvConn) carryOn() (moved bool, err error) {
	if c.over || c.err != nil {
		return false, c.err
	}
	c.post()
	if moved = c.err == nil && c.poll(); moved && c.err == nil {
		c.post()
	}
	return moved, c.err
}

// post and poll are called with mu held.
func (c *recvConn) post() {
	for c.posted-c.released.Load() < uint64(len(c.sizes)) && c.posted-c.arrived.Load() < maxRequests {
		request, r := c.call.irecv(c.ring.at(c.posted))
		if r != 0 {
			c.fail(fnIrecv, r)
			return
		}
		if request == 0 {
			return
		}
		c.requests[c.posted%uint64(len(c.requests))] = request
		c.posted++
	}
}

func (c *recvConn) poll() (moved bool) {
	for arrived := c.arrived.Load(); arrived < c.posted; moved = true {
		i := arrived % uint64(len(c.requests))
		ok, n, r := c.call.test(c.requests[i])
		if r != 0 {
			c.fail(fnTest, r)
			return moved
		}
		if !ok {
			return moved
		}
		c.sizes[i] = n
		arrived++
		c.arrived.Store(arrived)
	}
	return moved
}

// drain receives what the sender published before its goodbye, as far as there is room, so
// that the sender can go.
func (c *recvConn) drain() {
	for pause := minPause; !c.closed.Load() && !c.ctl.ended.Load(); pause = min(2*pause, maxPause) {
		if err := c.progress(); err != nil {
			return
		}
		if c.arrived.Load() >= c.ctl.last {
			_ = say(c.ctl.c, sayAll, nil) // a sender that is gone needs none
			return
		}
		time.Sleep(pause)
	}
}

// Close ends the connection, and tells the sender so.
func (c *recvConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.t.forget(c)
	c.t.dismiss(c)
	c.wake()
	if c.t.cfg.Guard.Aborted() == nil {
		c.ctl.goodbye(0)
	}
	c.end(fnCloseRecv)
	return nil
}
