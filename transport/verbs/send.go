package verbs

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/ends"
	"github.com/ringo-go/ringo/transport/internal/pace"
)

// A sendConn is the sending end. A slot may be filled again when its write is completed
// (the peer's device has all of it) and the receiver has released the slot.
type sendConn struct {
	*conn
	to       uint64                 // address of the receiver's ring
	there    atomic.Pointer[target] // of the payloads of a placed connection, nil until the receiver sends it
	slots    []sending
	next     uint64 // number of the slot to be published
	credit   uint64 // slots that the receiver has released
	reserved int    // bytes reserved, -1 for none

	heard atomic.Uint64 // credit that came over the line
}

// A sending is a slot of the ring.
type sending struct {
	rail   *rail // carries the slot, nil when the write is completed
	length int   // header and payload
}

// Reserve waits until the next slot is free. On a placed connection it does not wait.
func (c *sendConn) Reserve(n int) (mem.Region, error) {
	if n < 0 || n > c.shape.max {
		return mem.Region{}, fmt.Errorf("ib: reserve %d bytes of a slot of %d", n, c.shape.max)
	}
	if err := c.enter(); err != nil {
		return mem.Region{}, err
	}
	err := c.ended()
	switch {
	case err != nil:
	case c.shape.apart:
		err = c.link()
	case !c.hasFree():
		err = c.wait((*sendConn).hasFree)
	}
	if err == nil {
		if c.reserved < 0 {
			c.users.Add(1)
		}
		c.reserved = n
	}
	c.leave()
	if err != nil {
		return mem.Region{}, err
	}
	if c.shape.apart {
		return c.payloads.Slice(c.shape.payloadAt(c.next), n), nil
	}
	return mem.Host(c.area.bytes[c.shape.at(c.next)+headerLen:][:n]), nil
}

// Publish writes the reserved slot to the receiver. It waits only for a slot that Free has not
// counted.
func (c *sendConn) Publish(stamp transport.Stamp) error {
	n := c.reserved
	if n >= 0 {
		c.reserved = -1
		defer c.unuse()
	}
	if err := c.enter(); err != nil {
		return err
	}
	err := c.publish(n, stamp)
	c.leave()
	return err
}

func (c *sendConn) publish(n int, stamp transport.Stamp) error {
	if n < 0 {
		return fmt.Errorf("ib: publish without reserve")
	}
	if err := c.ended(); err != nil {
		return err
	}
	if c.shape.apart && !c.hasFree() {
		if err := c.wait((*sendConn).hasFree); err != nil {
			return err
		}
	}
	header{length: n, slot: c.next, stamp: stamp}.put(c.area.bytes[c.shape.at(c.next):])
	c.slot(c.next).length = headerLen + n
	if !c.write(c.next) {
		if err := c.wait((*sendConn).writeNext); err != nil {
			return err
		}
	}
	c.next++
	return nil
}

func (c *sendConn) slot(n uint64) *sending { return &c.slots[n%uint64(len(c.slots))] }

// hasFree reports whether the next slot is free.
func (c *sendConn) hasFree() bool { return c.free(c.next) }

func (c *sendConn) free(n uint64) bool {
	return n-c.credit < uint64(c.shape.ring) && c.slot(n).rail == nil && (!c.shape.apart || c.there.Load() != nil)
}

func (c *sendConn) writeNext() bool { return c.write(c.next) }

// write sends slot number n over a rail that is up; false if there is none.
func (c *sendConn) write(n uint64) bool {
	s := c.slot(n)
	for r := c.live(n); r != nil; r = c.live(n) {
		what, payload := c.pieces(n, r)
		err := r.write(n, uint32(n), what, payload)
		if err == nil {
			s.rail = r
			return true
		}
		c.fail(r, err.Error(), false)
	}
	return false
}

// Free is how many slots can be published now without waiting. On a placed connection that has ended
// it is all slots, and Reserve returns the reason.
func (c *sendConn) Free() (n int) {
	if c.enter() != nil {
		if c.shape.apart {
			n = c.shape.ring
		}
		return n
	}
	c.progress()
	if c.shape.apart && c.spent() {
		n = c.shape.ring
	}
	for n < c.t.cfg.Limits.Slots && c.free(c.next+uint64(n)) {
		n++
	}
	c.leave()
	return n
}

// spent reports whether a placed connection has ended. Such an end is final, since the caller may then
// fill slots that were not sent.
func (c *sendConn) spent() bool {
	if err := c.link(); err != nil {
		last := err
		c.over.CompareAndSwap(nil, &last)
	}
	return c.ended() != nil
}

// wait looks at completions until ready.
func (c *sendConn) wait(ready func(*sendConn) bool) error {
	w := pace.Waiter{Guard: c.t.cfg.Guard, Spin: c.t.cfg.Spin}
	for {
		c.progress()
		if ready(c) {
			return nil
		}
		if err := c.ended(); err != nil {
			return err
		}
		if err := c.link(); err != nil {
			return err
		}
		sleep, err := w.Pause()
		if err != nil {
			return err
		}
		if sleep && !c.arm() {
			c.sleep()
		}
	}
}

// progress takes completions and credits, and sends slots again that a failed rail has not
// sent.
func (c *sendConn) progress() {
	for _, r := range c.rails {
		switch p := r.phase(); {
		case p == railDown && r.retired:
			c.mend(r)
			continue
		case p == railCalled:
			c.rejoin(r)
		}
		done, _, err := r.poll()
		if err != nil {
			c.fail(r, err.Error(), false)
		}
		for i := range done {
			c.complete(r, &done[i])
		}
		if r.phase() == railDown {
			c.retire(r)
		}
	}
}

func (c *sendConn) complete(r *rail, w *ibverbs.WC) {
	isReceive := w.ID&receiveID != 0
	if w.ID&(receiveID|headerID) == 0 {
		r.posted--
	}
	switch {
	case w.Status != ibverbs.Success:
		c.fail(r, w.Status.String(), false)
	case w.ID == probeID:
		c.happen(r, railProved)
	case !isReceive:
		if s := c.slot(w.ID); s.rail == r {
			s.rail = nil
		}
	default:
		r.used++
		if err := r.restock(); err != nil {
			c.fail(r, err.Error(), false)
		}
		if more := int32(w.Imm - uint32(c.credit)); more > 0 && uint64(more) <= c.next-c.credit {
			c.credit += uint64(more)
		}
	}
}

// retire sends the slots over other rails that were not sent over r. The peer has said that
// it receives nothing over r any more, so no write can arrive late, in memory that is in use
// again. The peer has also said how many slots it has released.
func (c *sendConn) retire(r *rail) {
	if r.posted > 0 && fifo.Now()-r.since.Load() < int64(drainTime) {
		return // wait until the queue pair has given back its sends
	}
	if c.shape.apart && c.over.Load() != nil {
		return // the caller may have filled the slots anew, see Free
	}
	c.credit = min(max(c.credit, c.heard.Load()), c.next)
	first := c.next - min(c.next, uint64(c.shape.ring))
	for n := first; n < c.next; n++ {
		if c.slot(n).rail == r && !c.write(n) {
			return // link returns the reason
		}
	}
	r.retired = true
}

// said handles a message of the peer.
func (c *sendConn) said(m message) {
	switch m.kind {
	case goodbye:
		err := error(fifo.ErrClosed)
		if m.text != "" {
			err = fmt.Errorf("rank %d refuses: %s", c.peer, m.text)
		}
		c.over.CompareAndSwap(nil, &err)
	case placed:
		there, err := parseTarget(m, len(c.rails))
		if err == nil && !c.shape.apart {
			err = errors.New("a target for a connection whose payloads lie by their headers")
		}
		if err != nil {
			c.over.CompareAndSwap(nil, &err)
			return
		}
		c.there.Store(there)
	case down:
		if m.count > c.heard.Load() {
			c.heard.Store(m.count)
		}
	}
}

// finish sends the goodbye, and destroys the end when all published slots are completed.
func (c *sendConn) finish() {
	c.control.say(message{kind: goodbye, count: c.next})
	if c.sending() == 0 {
		c.destroy()
		return
	}
	go func() {
		c.linger()
		c.destroy()
	}()
}

// sending is how many published slots are not completed.
func (c *sendConn) sending() (n int) {
	for i := range c.slots {
		if c.slots[i].rail != nil {
			n++
		}
	}
	return n
}

// linger waits until the peer has acknowledged all published slots. Close of the Transport returns what is lost.
func (c *sendConn) linger() {
	over := func() bool { return c.over.Load() != nil || c.t.cfg.Guard.Aborted() != nil || c.link() != nil }
	n := ends.Linger(100*time.Microsecond, c.t.ends.Linger(), func() (int, bool) {
		if !over() {
			c.progress()
		}
		return c.sending(), over()
	})
	if n > 0 {
		lost := 0
		for _, s := range c.slots {
			if s.rail != nil {
				lost += s.length
			}
		}
		c.t.ends.Lose(fmt.Errorf("ib: rank %d has taken nothing for %v: %d bytes that were sent to it are lost", c.peer,
			c.t.ends.Linger(), lost))
	}
}
