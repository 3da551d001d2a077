package socket

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/ends"
	"github.com/ringo-go/ringo/transport/internal/pace"
)

// A sendConn is the sending end. Its slots are a ring of memory, each with room
// for the header right before the payload, so that a frame is one piece.
//
// A slot whose bytes the kernel has copied is free at once. A slot whose memory was
// lent is free when the receiver has given a credit for it.
type sendConn struct {
	t        *Transport
	peer     int  // rank
	max      int  // payload of a slot
	sealed   bool // under TLS, so the kernel gets copies
	senders  []*sender
	slots    []slot
	next     uint64 // number of the slot to be published
	reserved int    // bytes reserved, -1 for none
	closed   atomic.Bool

	memory []byte
	users  atomic.Int32 // of memory: the open connection, and a reservation
}

type slot struct {
	frame  []byte      // header and payload
	queued atomic.Bool // the kernel has not taken all of it
	sender *sender     // the sender of the frame, nil if never used
	due    uint64      // the slot is free when sender.repaid reaches this
}

const page = 4096

func newSendConn(t *Transport, peer int, streams []net.Conn) (*sendConn, error) {
	limits := t.cfg.Limits
	c := &sendConn{t: t, peer: peer, max: limits.SlotBytes, slots: make([]slot, limits.Slots), reserved: -1}
	_, c.sealed = streams[0].(*secure.Conn)
	all, err := newStreams(t, streams)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		c.senders = append(c.senders, newSender(s, t.cfg.Guard, limits.Slots))
	}
	// Payloads begin on a page: fewer pages to lend, and aligned for SIMD.
	stride := page + (limits.SlotBytes+page-1)/page*page
	memory, err := allocate(limits.Slots * stride)
	if err != nil {
		for _, s := range all {
			s.close()
		}
		return nil, fmt.Errorf("%d slots of %d bytes: %w", limits.Slots, limits.SlotBytes, err)
	}
	c.memory = memory
	c.users.Store(1)
	for i := range c.slots {
		c.slots[i].frame = memory[i*stride+page-headerLen:][:headerLen+limits.SlotBytes]
	}
	return c, nil
}

// Reserve waits until the memory of the next slot is free.
func (c *sendConn) Reserve(n int) (mem.Region, error) {
	if n < 0 || n > c.max {
		return mem.Region{}, fmt.Errorf("socket: reserve %d bytes of a slot of %d", n, c.max)
	}
	s := &c.slots[c.next%uint64(len(c.slots))]
	if err := c.free(s); err != nil {
		return mem.Region{}, err
	}
	if c.reserved < 0 && !c.use() {
		return mem.Region{}, fifo.ErrClosed
	}
	c.reserved = n
	return mem.Host(s.frame[headerLen:][:n]), nil
}

// Publish sends the reserved slot, as much as the kernel takes; the rest
// follows in the background.
func (c *sendConn) Publish(stamp transport.Stamp) error {
	n := c.reserved
	if n < 0 {
		return fmt.Errorf("socket: publish without reserve")
	}
	c.reserved = -1
	defer c.unuse()
	s := &c.slots[c.next%uint64(len(c.slots))]
	return c.send(s, chunk{head: s.frame[:headerLen+n], lend: n >= lendMin && !c.sealed}, n, 0, stamp)
}

// PublishFrom sends src as the next slot, without a copy where the kernel allows. src
// must stay unchanged until Flush has returned. It replaces Reserve and Publish, and
// waits as Reserve does.
func (c *sendConn) PublishFrom(src mem.Region, stamp transport.Stamp) error {
	n := src.Len()
	if n < lendMin {
		slot, err := c.Reserve(n)
		if err != nil {
			return err
		}
		copy(slot.Bytes(), src.Bytes())
		return c.Publish(stamp)
	}
	if n > c.max {
		return fmt.Errorf("socket: publish %d bytes in a slot of %d", n, c.max)
	}
	s := &c.slots[c.next%uint64(len(c.slots))]
	if err := c.free(s); err != nil {
		return err
	}
	if !c.use() {
		return fifo.ErrClosed
	}
	defer c.unuse()
	return c.send(s, chunk{head: s.frame[:headerLen], body: src.Bytes(), lend: true}, n, flagSoon, stamp)
}

// Flush waits until the receiver has consumed all that PublishFrom sent.
func (c *sendConn) Flush() error {
	for _, l := range c.senders {
		if err := c.until(l, nil, l.asked); err != nil {
			return err
		}
	}
	return nil
}

func (c *sendConn) send(s *slot, ch chunk, n int, flags uint8, stamp transport.Stamp) error {
	if err := c.alive(); err != nil {
		return err
	}
	l := c.senders[c.next%uint64(len(c.senders))]
	s.sender, s.due = l, 0
	if ch.lend {
		flags |= flagLent
		l.lent++
		s.due = l.lent
		if flags&flagSoon != 0 {
			l.asked = l.lent
		}
	}
	header{kind: kindSlot, flags: flags, length: n, slot: c.next, stamp: stamp}.put(s.frame)
	ch.slot = s
	c.next++
	return c.blame(l, l.put(ch))
}

// free waits until the memory of s may be written.
func (c *sendConn) free(s *slot) error {
	if s.sender == nil { // never used
		return c.alive()
	}
	return c.until(s.sender, s, s.due)
}

// Free is how many of the next slots are known to be free. Credits that have
// come back and were not read yet do not count.
func (c *sendConn) Free() (n int) {
	for ; n < len(c.slots); n++ {
		s := &c.slots[(c.next+uint64(n))%uint64(len(c.slots))]
		if s.sender != nil && (s.queued.Load() || s.sender.repaid < s.due) {
			break
		}
	}
	return n
}

// until waits until the kernel has all of s and the receiver has paid back due
// credits on l.
func (c *sendConn) until(l *sender, s *slot, due uint64) error {
	if err := c.alive(); err != nil {
		return err
	}
	w := pace.Waiter{Guard: c.t.cfg.Guard, Spin: c.t.cfg.Spin, Slow: slowTries}
	for {
		queued := s != nil && s.queued.Load()
		if queued {
			if err := l.help(); err != nil {
				return c.blame(l, err)
			}
			queued = s.queued.Load()
		}
		if l.repaid < due {
			// A receiver may have given credits and closed: the credits count first.
			if err := l.collect(); err != nil && err != errAgain && l.repaid < due {
				return c.blame(l, err)
			}
		}
		owed := l.repaid < due
		if !queued && !owed {
			return nil
		}
		sleep, err := w.Pause()
		if err != nil {
			return err
		}
		if sleep {
			if err := l.poll(owed, queued, pace.Patience); err != nil {
				return c.blame(l, err)
			}
		}
		if c.closed.Load() {
			return fifo.ErrClosed
		}
	}
}

func (c *sendConn) alive() error {
	if c.closed.Load() {
		return fifo.ErrClosed
	}
	return c.t.cfg.Guard.Aborted()
}

func (c *sendConn) blame(l *sender, err error) error {
	if err == nil {
		return nil
	}
	if c.closed.Load() {
		return fifo.ErrClosed
	}
	if g := c.t.cfg.Guard.Aborted(); g != nil {
		return g
	}
	return broken(l.farewell(err))
}

// Close sends the goodbye after all published slots. It lingers in the background
// only if the kernel has not taken them all, because the peer reads too slowly.
func (c *sendConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.t.ends.Forget(c)
	if c.t.cfg.Guard.Aborted() == nil {
		bye := make([]byte, headerLen)
		header{kind: kindGoodbye}.put(bye)
		for _, l := range c.senders {
			_ = l.put(chunk{head: bye}) // a peer that is gone needs none
		}
		if c.undelivered() > 0 && c.t.ends.Go(c.linger) {
			return nil
		}
	}
	c.end()
	return nil
}

// linger waits until the peer's kernel has all published slots, unless the peer has gone or closed.
func (c *sendConn) linger() {
	late := time.AfterFunc(ends.LingerTime, func() {
		c.t.log.Warn("socket: Close waits for a rank to receive what was sent to it", "rank", c.t.cfg.Self.Rank, "peer",
			c.peer, "at most", c.t.ends.Linger())
	})
	n := ends.Linger(time.Millisecond, c.t.ends.Linger(),
		func() (int, bool) { return c.undelivered(), c.t.cfg.Guard.Aborted() != nil })
	late.Stop()
	if n > 0 {
		c.t.ends.Lose(fmt.Errorf("socket: rank %d has taken nothing for %v: %d bytes that were sent to it are lost", c.peer,
			c.t.ends.Linger(), n))
	}
	c.end()
}

// undelivered is how many bytes the peer's kernel does not have yet. A socket that is
// closed before that loses them if a credit arrives.
func (c *sendConn) undelivered() (n int) {
	for _, l := range c.senders {
		n += l.undelivered()
	}
	return n
}

func (c *sendConn) end() {
	for _, l := range c.senders {
		l.end()
	}
	c.unuse()
}

// use keeps the memory for a caller that fills a slot; false if Close has given it back.
func (c *sendConn) use() bool {
	for n := c.users.Load(); n > 0; n = c.users.Load() {
		if c.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// unuse releases the memory when the last user calls it: a caller that fills a slot
// keeps the memory until Publish, even if the connection is closed.
func (c *sendConn) unuse() {
	if c.users.Add(-1) == 0 {
		release(c.memory)
	}
}
