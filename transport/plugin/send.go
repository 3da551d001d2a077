package plugin

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
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

	lengths []int         // of messages, by slot; under mu
	posted  uint64        // slots that the plugin has taken; under mu
	done    atomic.Uint64 // slots that it has sent; written under mu
	busy    bool          // counted in Transport.busy; under mu
}

func newSendConn(h *half) *sendConn {
	return &sendConn{half: h, reserved: -1, lengths: make([]int, h.t.cfg.Limits.Slots)}
}

// Reserve waits until the next slot is free.
func (c *sendConn) Reserve(n int) (mem.Region, error) {
	if n < 0 || n > c.max {
		return mem.Region{}, fmt.Errorf("plugin: reserve %d bytes of a slot of %d", n, c.max)
	}
	if err := c.alive(); err != nil {
		return mem.Region{}, err
	}
	if c.Free() == 0 {
		if err := c.wait(); err != nil {
			return mem.Region{}, err
		}
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
	if err := c.alive(); err != nil {
		return err
	}
	if err := c.ctl.why(); err != nil {
		return err
	}
	putHeader(c.ring.at(c.next), c.next, n, s)
	c.mu.Lock()
	c.lengths[c.next%uint64(len(c.lengths))] = headerLen + n
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

// Free is how many slots the plugin was known to have sent when it was last asked.
func (c *sendConn) Free() int { return len(c.lengths) - int(c.next-c.done.Load()) }

// wait waits until a slot is free.
func (c *sendConn) wait() error {
	w := waiter{guard: c.t.cfg.Guard, spin: c.t.cfg.Spin}
	for {
		if err := c.ctl.why(); err != nil {
			return err
		}
		c.mu.Lock()
		c.progress()
		err := c.err
		c.mu.Unlock()
		if err != nil {
			return c.blame(err)
		}
		if c.Free() > 0 {
			return nil
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
		moving = c.post() || c.poll()
		moved = moved || moving
	}
	c.setBusy(c.err == nil && c.done.Load() < c.next)
	return moved
}

func (c *sendConn) post() (moved bool) {
	for c.posted < c.next && c.posted-c.done.Load() < maxRequests {
		i := c.posted % uint64(len(c.lengths))
		request, r := c.call.isend(c.ring.slots[i][:c.lengths[i]])
		if r != 0 {
			c.fail(fnIsend, r)
			return moved
		}
		if request == 0 {
			return moved
		}
		c.requests[i] = request
		c.posted++
		moved = true
	}
	return moved
}

func (c *sendConn) poll() (moved bool) {
	for done := c.done.Load(); done < c.posted; moved = true {
		ok, _, r := c.call.test(c.requests[done%uint64(len(c.requests))])
		if r != 0 {
			c.fail(fnTest, r)
			return moved
		}
		if !ok {
			return moved
		}
		done++
		c.done.Store(done)
	}
	return moved
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
	c.t.forget(c)
	c.wake()
	if c.t.cfg.Guard.Aborted() == nil && c.t.background(c.linger) {
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
