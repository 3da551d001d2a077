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
	arrived  atomic.Uint64 // slots that have arrived; written under mu
	fetch    fetch         // under mu
}

func newRecvConn(h *half) *recvConn {
	return &recvConn{half: h, sizes: make([]int, h.t.cfg.Limits.Slots)}
}

// Next waits for the next slot.
func (c *recvConn) Next() (mem.Region, transport.Stamp, error) {
	h, err := c.header()
	if err != nil {
		return mem.Region{}, transport.Stamp{}, err
	}
	slot := c.released.Load()
	if h.byItself {
		if err := c.get(c.place(c.direct, slot, headerLen, h.n), false); err != nil {
			return mem.Region{}, transport.Stamp{}, err
		}
	}
	c.held = true
	return mem.Host(c.ring.at(slot)[headerLen:][:h.n]), h.stamp, nil
}

// NextInto receives the payload of the next slot into dst. Where the sender has published it
// from registered memory and dst is registered too, nothing is copied, and dst may be a GPU's.
func (c *recvConn) NextInto(dst mem.Region) (transport.Stamp, error) {
	h, err := c.header()
	if err != nil {
		return transport.Stamp{}, err
	}
	if h.n != dst.Len() {
		return h.stamp, &transport.LengthError{Got: h.n, Want: dst.Len()}
	}
	slot := c.released.Load()
	payload := c.ring.at(slot)[headerLen:][:h.n]
	if h.byItself {
		c.mu.Lock()
		to, gpu, ok := c.span(c.direct, dst)
		err := c.err
		c.mu.Unlock()
		if err != nil {
			return h.stamp, c.blame(err)
		}
		if ok {
			payload = nil
		} else {
			to, gpu = c.place(c.direct, slot, headerLen, h.n), false
		}
		if err := c.get(to, gpu); err != nil {
			return h.stamp, err
		}
	}
	if len(payload) > 0 {
		if !dst.IsHost() {
			return h.stamp, errUnknown
		}
		copy(dst.Bytes(), payload)
	}
	c.held = true
	return h.stamp, c.Release()
}

// header waits for the next slot's header.
func (c *recvConn) header() (h header, err error) {
	if c.held {
		return h, errors.New("plugin: next without release")
	}
	slot := c.released.Load()
	if err := c.await(slot, func() bool { return c.arrived.Load() > slot }); err != nil {
		return h, err
	}
	h, err = parseHeader(c.ring.at(slot), slot, c.sizes[slot%uint64(len(c.sizes))], c.max)
	if err == nil && h.byItself && c.direct == nil {
		err = errors.New("a payload was announced that cannot come")
	}
	if err != nil {
		return h, c.t.lib.failed("irecv", err)
	}
	return h, nil
}

// await waits until there is what the receiver wants, for which so many slots must have been
// published.
func (c *recvConn) await(slots uint64, there func() bool) error {
	return c.wait(func() bool {
		if c.over {
			return false
		}
		_, _ = c.carryOn() // wait sees the error
		return there()
	}, func(parted error, ended bool) error {
		switch {
		case parted != fifo.ErrClosed:
			return parted
		case slots >= c.ctl.last && c.fetch.stage == nothing:
			return fifo.ErrClosed
		case ended:
			return fmt.Errorf("the peer has gone: it published %d slots and %d have arrived", c.ctl.last, c.arrived.Load())
		}
		return nil
	})
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

// carryOn is progress with mu held. It reports whether anything went on.
func (c *recvConn) carryOn() (moved bool, err error) {
	if c.over || c.err != nil {
		return false, c.err
	}
	c.post()
	if c.err == nil && c.poll() {
		moved = true
		if c.err == nil {
			c.post()
		}
	}
	for c.err == nil && c.fetch.stage != nothing && c.fetchOn() {
		moved = true
	}
	return moved, c.err
}

// post and poll are called with mu held.
func (c *recvConn) post() {
	for q := c.main; q.posted-c.released.Load() < uint64(len(c.sizes)) && !q.full(); {
		request, r := q.call.irecv(c.place(q, q.posted, 0, headerLen+c.max))
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

func (c *recvConn) poll() (moved bool) {
	for q := c.main; ; moved = true {
		done, n, r := q.next()
		if r != 0 {
			c.fail(fnTest, r)
			return moved
		}
		if !done {
			return moved
		}
		c.sizes[(q.done-1)%uint64(len(c.sizes))] = n
		c.arrived.Store(q.done)
	}
}

// drain receives what the sender published before its goodbye, as far as there is room, so
// that the sender can go.
func (c *recvConn) drain() {
	for pause := minPause; !c.closed.Load() && !c.ctl.ended.Load(); pause = min(2*pause, maxPause) {
		if err := c.progress(); err != nil {
			return
		}
		// A payload that comes by itself is there when it was fetched.
		if c.arrived.Load() >= c.ctl.last && (c.direct == nil || c.released.Load() >= c.ctl.last) {
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
	c.t.dismiss(c)
	c.wake()
	if c.t.cfg.Guard.Aborted() == nil {
		c.ctl.goodbye(0)
	}
	c.end(fnCloseRecv)
	return nil
}
