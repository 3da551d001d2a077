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

	slots    []outgoing    // by slot; under mu
	payloads []span        // that go by themselves, by number
	owned    uint64        // number of the next of those; written by the sender, under mu
	sent     atomic.Uint64 // slots that are free again; written under mu
	busy     bool          // counted in Transport.busy; under mu
}

// An outgoing is a slot that was published.
type outgoing struct {
	length int    // of the message
	owned  uint64 // payloads up to it that go by themselves
}

func newSendConn(h *half) *sendConn {
	slots := h.t.cfg.Limits.Slots
	return &sendConn{half: h, reserved: -1, slots: make([]outgoing, slots), payloads: make([]span, slots)}
}

// Reserve waits until the next slot is free.
func (c *sendConn) Reserve(n int) (mem.Region, error) {
	if n < 0 || n > c.max {
		return mem.Region{}, fmt.Errorf("plugin: reserve %d bytes of a slot of %d", n, c.max)
	}
	if err := c.room(); err != nil {
		return mem.Region{}, err
	}
	c.reserved = n
	return mem.Host(c.ring.at(c.next)[headerLen:][:n]), nil
}

// Publish gives the reserved slot to the plugin, which sends it in the background.
func (c *sendConn) Publish(s transport.Stamp) error {
	n := c.reserved
	if n < 0 {
		return fmt.Errorf("plugin: publish without reserve")
	}
	c.reserved = -1
	return c.publish(header{n: n, stamp: s}, headerLen+n, nil)
}

// PublishFrom sends src. Memory that was registered before the connection was made is not
// copied, and may be a GPU's.
func (c *sendConn) PublishFrom(src mem.Region, s transport.Stamp) error {
	n := src.Len()
	if n > c.max {
		return fmt.Errorf("plugin: publish %d bytes in a slot of %d", n, c.max)
	}
	if err := c.room(); err != nil {
		return err
	}
	if c.direct != nil && (n >= directMin || !src.IsHost() && n > 0) {
		c.mu.Lock()
		payload, _, ok := c.span(c.direct, src)
		err := c.err
		c.mu.Unlock()
		if err != nil {
			return c.blame(err)
		}
		if ok {
			return c.publish(header{n: n, byItself: true, stamp: s}, headerLen, &payload)
		}
	}
	if !src.IsHost() && n > 0 {
		return errUnknown
	}
	if n > 0 {
		copy(c.ring.at(c.next)[headerLen:], src.Bytes())
	}
	return c.publish(header{n: n, stamp: s}, headerLen+n, nil)
}

// directMin is the least that is sent without a copy: a second message costs more than copying
// less.
const directMin = 8 << 10

var errUnknown = errors.New("plugin: GPU memory that was not registered at both ends before the connection was made")

// Flush waits until the plugin has sent all that PublishFrom was given.
func (c *sendConn) Flush() error {
	if c.direct == nil {
		return c.alive()
	}
	return c.wait(func() bool {
		c.progress()
		return c.direct.done == c.owned
	}, parting)
}

// parting: a sender has nothing to say to a peer that has parted.
func parting(parted error, _ bool) error { return parted }

// Free is how many slots the plugin was known to have sent when it was last asked.
func (c *sendConn) Free() int { return len(c.slots) - int(c.next-c.sent.Load()) }

// room waits until a slot is free.
func (c *sendConn) room() error {
	if c.Free() > 0 {
		return c.alive()
	}
	return c.wait(func() bool {
		c.progress()
		return c.Free() > 0
	}, parting)
}

// publish has the next slot sent, a message of so many bytes, and the payload that goes by
// itself, unless it is nil.
func (c *sendConn) publish(h header, length int, payload *span) error {
	if err := c.alive(); err != nil {
		return err
	}
	if err := c.ctl.why(); err != nil {
		return err
	}
	h.put(c.ring.at(c.next), c.next)
	c.mu.Lock()
	if payload != nil {
		c.payloads[c.owned%uint64(len(c.payloads))] = *payload
		c.owned++
	}
	c.slots[c.next%uint64(len(c.slots))] = outgoing{length, c.owned}
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

// progress gives the plugin what it takes and asks what it has sent. It reports whether
// anything went on. The caller holds mu.
func (c *sendConn) progress() (moved bool) {
	if c.over || c.err != nil {
		c.setBusy(false)
		return false
	}
	for moving := true; moving && c.err == nil; {
		moving = c.step(c.main, c.next)
		if c.direct != nil && c.err == nil {
			moving = c.step(c.direct, c.owned) || moving
		}
		moved = moved || moving
	}
	sent := c.sent.Load()
	for sent < c.main.done && (c.direct == nil || c.slots[sent%uint64(len(c.slots))].owned <= c.direct.done) {
		sent++
	}
	c.sent.Store(sent)
	c.setBusy(c.err == nil && sent < c.next)
	return moved
}

// step carries on one queue, whose messages up to end are known.
func (c *sendConn) step(q *queue, end uint64) (moved bool) {
	for q.posted < end && !q.full() {
		request, r := q.call.isend(c.message(q))
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

// message is the next one that the plugin is to get.
func (c *sendConn) message(q *queue) span {
	i := q.posted % uint64(len(c.slots))
	if q == c.direct {
		return c.payloads[i]
	}
	return c.place(q, q.posted, 0, c.slots[i].length)
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
