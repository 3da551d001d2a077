package plugin

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A recvConn is the receiving end. A receive is posted for every slot that is free.
type recvConn struct {
	*half
	taken    uint64        // slots that Next has returned
	released atomic.Uint64 // slots that the caller has consumed; written by the receiver
	sizes    []int         // of messages, by slot; only the actor uses an entry until its slot has arrived
	arrived  atomic.Uint64 // slots that have arrived; written by the actor

	// For a placed connection. Only the actor uses these, except entries of payloads that have arrived.
	payloads []int   // sizes of payloads, by slot
	flushed  uint64  // payloads that kernels see
	flushing uintptr // request that flushes the next one, 0 for none
}

func newRecvConn(h *half) *recvConn {
	c := &recvConn{half: h, sizes: make([]int, h.t.cfg.Limits.Slots), payloads: make([]int, h.t.cfg.Limits.Slots)}
	h.mover = c
	return c
}

// Next waits for the next slot.
func (c *recvConn) Next() (mem.Region, transport.Stamp, error) {
	most := uint64(1)
	if c.direct != nil {
		most = uint64(len(c.sizes))
	}
	slot := c.taken
	if slot-c.released.Load() == most {
		return mem.Region{}, transport.Stamp{}, errors.New("plugin: next without release")
	}
	if err := c.await(slot); err != nil {
		return mem.Region{}, transport.Stamp{}, err
	}
	message, i := c.ring.at(slot), slot%uint64(len(c.sizes))
	payload := c.sizes[i] - headerLen
	if c.direct != nil {
		payload = c.payloads[i]
	}
	h, err := parseHeader(message, slot, payload)
	if err != nil {
		return mem.Region{}, h.stamp, c.malformed(err)
	}
	c.taken++
	if c.direct != nil {
		return c.slots.Slice(c.offset(slot), h.n), h.stamp, nil
	}
	return mem.Host(message[headerLen:][:h.n]), h.stamp, nil
}

// malformed is the error of a received message that no sender sends.
func (c *recvConn) malformed(err error) error {
	e := c.t.lib.failed("irecv", err)
	e.Device, e.Peer = c.dev.String(), c.peer
	return e
}

// await waits until a slot has arrived.
func (c *recvConn) await(slot uint64) error {
	if c.arrived.Load() > slot {
		return c.alive()
	}
	return c.wait(func() bool { return c.arrived.Load() > slot },
		func(parted error, ended bool) error { return c.gone(slot, parted, ended) })
}

// gone is why a slot never arrives after the peer has parted, nil if it still may.
func (c *recvConn) gone(slot uint64, parted error, ended bool) error {
	switch {
	case parted != fifo.ErrClosed:
		return parted
	case slot >= c.ctl.last:
		return fifo.ErrClosed
	case ended:
		return fmt.Errorf("the peer has gone: it published %d slots and %d have arrived", c.ctl.last, c.arrived.Load())
	}
	return nil
}

// Arrived is part of transport.PlacedRecvConn. It makes the actor poll the plugin, unless all slots have arrived.
func (c *recvConn) Arrived() int {
	if n := int(c.arrived.Load() - c.taken); n > 0 {
		if n < len(c.sizes) {
			c.want() // the caller may wait for more
		}
		return n
	}
	parted, ended, err := c.ctl.why(), c.ctl.ended.Load(), c.failure() // before looking
	if parted != nil {
		if c.look() != nil {
			return 1 // Next returns the reason
		}
	} else {
		c.watched.Store(true)
		c.want()
		runtime.Gosched() // the caller asks again at once
	}
	n := int(c.arrived.Load() - c.taken)
	if n == 0 && (err != nil || c.alive() != nil || parted != nil && c.gone(c.taken, parted, ended) != nil) {
		return 1 // Next returns the reason
	}
	return n
}

// Release gives the oldest slot that Next has given back: the plugin may receive into it.
func (c *recvConn) Release() error {
	if c.released.Load() == c.taken {
		return errors.New("plugin: release without next")
	}
	if c.closed.Load() {
		return fifo.ErrClosed
	}
	c.released.Add(1)
	c.want()
	return nil // an error shows at Next
}

// What follows is the actor's.

// step is part of mover. It posts what can be posted and asks what has arrived.
func (c *recvConn) step() (moved bool) {
	if c.over || c.failure() != nil {
		return false
	}
	for {
		c.receive()
		if c.failure() != nil || !c.poll() {
			break
		}
		moved = true
	}
	return moved || c.failure() != nil
}

// receive has the plugin receive into the free slots.
func (c *recvConn) receive() {
	if c.direct == nil {
		c.receiveTo(c.main, headerLen+c.max)
		return
	}
	c.receiveTo(c.main, headerLen)
	if c.slots.Len() > 0 && c.failure() == nil { // accepted
		c.receiveTo(c.direct, c.max)
	}
}

func (c *recvConn) receiveTo(q *queue, n int) {
	for q.posted-c.released.Load() < uint64(len(c.sizes)) && !q.full() {
		request, r := q.call.irecv(c.message(q, q.posted, n))
		if r != 0 {
			c.fail(fnIrecv, r)
			return
		}
		if request == 0 {
			return
		}
		q.begun(request)
	}
}

// poll tests the receives. It reports whether anything made progress.
func (c *recvConn) poll() (moved bool) {
	moved = c.come(c.main, c.sizes, headerLen, c.ring.length())
	arrived := c.main.done
	if c.direct != nil && c.failure() == nil {
		moved = c.come(c.direct, c.payloads, 0, c.max) || moved
		moved = c.flush() || moved
		arrived = min(arrived, c.flushed)
	}
	if c.failure() == nil {
		c.arrived.Store(arrived)
	}
	return moved
}

// come tests the receives of a queue and notes the sizes, which must be from least to most bytes.
func (c *recvConn) come(q *queue, sizes []int, least, most int) (moved bool) {
	for {
		done, n, r := q.next()
		if r != 0 {
			c.fail(fnTest, r)
			return moved
		}
		if !done {
			return moved
		}
		if n < least || n > most {
			c.broke(c.malformed(fmt.Errorf("malformed message of %d bytes", n)))
			return moved
		}
		sizes[(q.done-1)%uint64(len(sizes))] = n
		moved = true
	}
}

// flush makes received payloads visible to the GPU's kernels, where that needs a call of the plugin.
func (c *recvConn) flush() (moved bool) {
	for c.failure() == nil && c.flushed < c.direct.done {
		n := c.payloads[c.flushed%uint64(len(c.payloads))]
		if c.flushing == 0 && n > 0 && !c.seen {
			var r Result
			if c.flushing, r = c.direct.call.iflush(c.message(c.direct, c.flushed, n)); r != 0 {
				c.fail(fnIflush, r)
				return moved
			}
		}
		if c.flushing != 0 {
			done, _, r := c.direct.call.test(c.flushing)
			if r != 0 {
				c.fail(fnTest, r)
			}
			if r != 0 || !done {
				return moved
			}
			c.flushing = 0
		}
		c.flushed++
		moved = true
	}
	return moved
}

// drain receives the slots that were published before the sender's goodbye, as far as slots are
// free here, so that the sender can go.
func (c *recvConn) drain() {
	for pause := minPause; !c.closed.Load() && !c.ctl.ended.Load(); pause = min(2*pause, maxPause) {
		if c.ask(); c.failure() != nil {
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
	c.t.ends.Forget(c)
	c.t.dismiss(c.half)
	c.wake()
	if c.t.cfg.Guard.Aborted() == nil {
		c.ctl.goodbye(0)
	}
	if !c.t.ends.Go(func() { c.end(fnCloseRecv) }) {
		c.end(fnCloseRecv)
	}
	return nil
}
