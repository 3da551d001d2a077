package plugin

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A sendConn is the sending end. A slot is free again when the plugin has sent it.
type sendConn struct {
	*half
	reserved int           // bytes reserved, -1 for none
	next     uint64        // number of the slot to be published
	lengths  []int         // of payloads, by slot; the sender writes while the slot is free, then the actor reads
	public   atomic.Uint64 // next, for the actor
	sent     atomic.Uint64 // slots that are free again; written by the actor
}

func newSendConn(h *half) *sendConn {
	c := &sendConn{half: h, reserved: -1, lengths: make([]int, h.t.cfg.Limits.Slots)}
	h.mover = c
	return c
}

// Reserve waits until the next slot is free. On a placed connection it does not wait.
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

// Free is how many slots are free, and makes the actor test the sends under way. All slots are free on a connection
// that has ended.
func (c *sendConn) Free() int {
	if c.alive() != nil || c.ctl.why() != nil {
		return len(c.lengths)
	}
	if c.next == c.sent.Load() {
		return len(c.lengths)
	}
	c.want()
	if c.watched.Store(true); c.free() == 0 {
		runtime.Gosched() // the caller asks again at once
	}
	if c.failure() != nil {
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
	return c.wait(func() bool { return c.free() > 0 }, parting)
}

// usable is nil while slots can be published.
func (c *sendConn) usable() error {
	if err := c.alive(); err != nil {
		return err
	}
	if err := c.ctl.why(); err != nil {
		return err
	}
	if err := c.failure(); err != nil {
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
	c.lengths[c.next%uint64(len(c.lengths))] = h.n
	c.next++
	c.public.Store(c.next)
	c.want()
	return nil
}

// What follows is the actor's.

// step is part of mover. It posts as many sends as the plugin accepts, and tests the sends under way.
func (c *sendConn) step() (moved bool) {
	if c.over || c.failure() != nil {
		c.setBusy(false)
		return false
	}
	for moving := true; moving && c.failure() == nil; {
		moving = c.carry(c.main)
		if c.direct != nil && c.failure() == nil {
			moving = c.carry(c.direct) || moving
		}
		moved = moved || moving
	}
	sent := c.main.done
	if c.direct != nil {
		sent = min(sent, c.direct.done)
	}
	c.sent.Store(sent)
	broken := c.failure() != nil
	c.setBusy(!broken && sent < c.public.Load())
	return moved || broken
}

// carry posts and tests the sends of one queue.
func (c *sendConn) carry(q *queue) (moved bool) {
	for q.posted < c.public.Load() && !q.full() {
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

// length is the length of the queue's next message to be posted.
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
	switch was := c.busy.Swap(busy); {
	case busy && !was:
		c.t.busy.Add(1)
	case !busy && was:
		c.t.busy.Add(-1)
	}
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

// linger keeps the sends going until the receiver says that it has all slots. Close of the Transport reports the
// slots that are lost.
func (c *sendConn) linger() {
	defer c.end()
	c.ctl.goodbye(c.public.Load())
	var sent uint64
	for last := time.Now(); time.Since(last) < c.t.ends.Linger(); {
		if c.t.cfg.Guard.Aborted() != nil {
			return
		}
		c.ask()
		if c.failure() != nil {
			return
		}
		if n := c.sent.Load(); n != sent {
			sent, last = n, time.Now()
		}
		select {
		case <-c.ctl.acked:
			return
		case <-c.ctl.parted:
			return
		case <-time.After(minPause):
		}
	}
	c.t.ends.Lose(fmt.Errorf("plugin: rank %d has taken nothing for %v: it may lack the last messages, %d at least",
		c.peer, c.t.ends.Linger(), c.public.Load()-sent))
}

func (c *sendConn) end() {
	c.t.dismiss(c.half)
	c.half.end(fnCloseSend)
}
