package plugin

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// lingerTime is how long a closed sending end waits, in the background, for a peer that takes
// none of the published slots.
const lingerTime = time.Second

// A sendConn is the sending end. A slot is free again when the plugin has sent it.
type sendConn struct {
	*half
	reserved int    // bytes reserved, -1 for none
	next     uint64 // number of the slot to be published; written by the sender, under mu

	lengths []int         // of payloads, by slot; under mu
	sent    atomic.Uint64 // slots that are free again; written under mu
	busy    bool          // counted in Transport.busy; under mu
}

func newSendConn(h *half) *sendConn {
	return &sendConn{half: h, reserved: -1, lengths: make([]int, h.t.cfg.Limits.Slots)}
}

// Reserve waits until the next slot is free; that of a placed connection does not wait.
func (c *sendConn) Reserve(n int) (mem.Region, error) {
	if n < 0 || n > c.max {
		return mem.Region{}, fmt.Errorf("plugin: reserve %d bytes of a slot of %d", n, c.max)
	}
	if c.direct != nil {
		if err := c.usable(); err != nil {
			return mem.Region{}, err
		}
		c.reserved = n
		return c.slots.Slice(c.offset(c.next), n), nil
	}
	if err := c.awaitFree(); err != nil {
		return mem.Region{}, err
	}
	c.reserved = n
	return mem.Host(c.ring.at(c.next)[headerLen:][:n]), nil
}

// Publish gives the reserved slot to the plugin, which sends it in the background.
func (c *sendConn) Publish(s transport.Stamp) error {
	n := c.reserved
	if n < 0 {
		return errors.New("plugin: publish without reserve")
	}
	if c.free() == 0 && c.Free() == 0 { // of a placed connection
		return errors.New("plugin: publish a slot that is not free")
	}
	c.reserved = -1
	return c.publish(header{n: n, stamp: s})
}

// parting: a sender has nothing to say to a peer that has parted.
func parting(parted error, _ bool) error { return parted }

// Free is how many slots are free. It tests the sends under way first. All slots are free on a connection that has
// ended.
func (c *sendConn) Free() int {
	if c.alive() != nil || c.ctl.why() != nil {
		return len(c.lengths)
	}
	if c.next == c.sent.Load() {
		return len(c.lengths)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.progress(); c.err != nil {
		return len(c.lengths)
	}
	return c.free()
}

func (c *sendConn) free() int { return len(c.lengths) - int(c.next-c.sent.Load()) }

// awaitFree waits until a slot is free.
func (c *sendConn) awaitFree() error {
	if c.free() > 0 {
		return c.alive()
	}
	return c.wait(func() bool {
		c.progress()
		return c.free() > 0
	}, parting)
}

// usable is nil while slots can be published.
func (c *sendConn) usable() error {
	if err := c.alive(); err != nil {
		return err
	}
	if err := c.ctl.why(); err != nil {
		return err
	}
	c.mu.Lock()
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return c.blame(err)
	}
	return nil
}

// publish has the next slot sent.
func (c *sendConn) publish(h header) error {
	if err := c.usable(); err != nil {
		return err
	}
	h.put(c.ring.at(c.next), c.next)
	c.mu.Lock()
	c.lengths[c.next%uint64(len(c.lengths))] = h.n
	c.next++
	c.progress()
	err, busy := c.err, c.busy
	c.mu.Unlock()
	if err != nil {
		return c.blame(err)
	}
	if busy {
		c.t.stir()
	}
	return nil
}

// try is part of mover.
func (c *sendConn) try() bool {
	if !c.mu.TryLock() {
		return false
	}
	moved := c.progress()
	broken := c.err != nil
	c.mu.Unlock()
	if moved || broken {
		c.wake()
	}
	return moved
}

// progress posts as many sends as the plugin accepts, and tests the sends under way. It reports whether
// anything went on. The caller holds mu.
func (c *sendConn) progress() (moved bool) {
	if c.over || c.err != nil {
		c.setBusy(false)
		return false
	}
	for moving := true; moving && c.err == nil; {
		moving = c.step(c.main)
		if c.direct != nil && c.err == nil {
			moving = c.step(c.direct) || moving
		}
		moved = moved || moving
	}
	sent := c.main.done
	if c.direct != nil {
		sent = min(sent, c.direct.done)
	}
	c.sent.Store(sent)
	c.setBusy(c.err == nil && sent < c.next)
	return moved
}

// step carries on one queue.
func (c *sendConn) step(q *queue) (moved bool) {
	for q.posted < c.next && !q.full() {
		request, r := q.call.isend(c.message(q, q.posted, c.length(q)))
		if r != 0 {
			c.fail(fnIsend, r)
			return moved
		}
		if request == 0 {
			break
		}
		q.begun(request)
		moved = true
	}
	for {
		done, _, r := q.next()
		if r != 0 {
			c.fail(fnTest, r)
			return moved
		}
		if !done {
			return moved
		}
		moved = true
	}
}

// length is that of the next message that the plugin is to get.
func (c *sendConn) length(q *queue) int {
	n := c.lengths[q.posted%uint64(len(c.lengths))]
	switch {
	case q == c.direct:
		return n
	case c.direct != nil:
		return headerLen
	}
	return headerLen + n
}

func (c *sendConn) setBusy(busy bool) {
	switch {
	case busy && !c.busy:
		c.t.busy.Add(1)
	case !busy && c.busy:
		c.t.busy.Add(-1)
	}
	c.busy = busy
}

// Close says goodbye. What was published still reaches a peer that goes on.
func (c *sendConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.t.ends.Forget(c)
	c.wake()
	if c.t.cfg.Guard.Aborted() == nil && c.t.ends.Go(c.linger) {
		return nil
	}
	c.end()
	return nil
}

// linger carries the sends on until the receiver says that it has all.
func (c *sendConn) linger() {
	defer c.end()
	c.mu.Lock()
	published := c.next
	c.mu.Unlock()
	c.ctl.goodbye(published)
	for last := time.Now(); time.Since(last) < lingerTime && c.t.cfg.Guard.Aborted() == nil; {
		c.mu.Lock()
		moved, err := c.progress(), c.err
		c.mu.Unlock()
		if err != nil {
			return
		}
		if moved {
			last = time.Now()
		}
		select {
		case <-c.ctl.acked:
			return
		case <-c.ctl.parted:
			return
		case <-time.After(minPause):
		}
	}
}

func (c *sendConn) end() {
	c.mu.Lock()
	c.setBusy(false)
	c.mu.Unlock()
	c.t.dismiss(c)
	c.half.end(fnCloseSend)
}
