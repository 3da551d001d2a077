package verbs

import (
	"fmt"
	"sync/atomic"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/ibverbs"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/pace"
)

// A recvConn is the receiving end.
type recvConn struct {
	*conn
	wrote []arrival // by slot of the ring
	next  uint64    // number of the slot that is due
	back  uint64    // slots that were released
	held  int       // slots that Next returned and that were not released; only the receiver's goroutine uses it
	err   error     // of a malformed slot, or one that could not be read back

	readBack bool // slots are read back, see offer

	bye  atomic.Bool
	last atomic.Uint64 // slots that the sender has published in all, if bye
}

// An arrival is a slot of the ring that has come.
type arrival struct {
	bytes int  // length of the write that announced the slot, 0 for none
	seen  bool // the slot is visible: it was read back, or need not be
}

// Next waits for the slot that is due.
func (c *recvConn) Next() (mem.Region, transport.Stamp, error) {
	if err := c.enter(); err != nil {
		return mem.Region{}, transport.Stamp{}, err
	}
	b, stamp, err := c.receive()
	c.leave()
	return b, stamp, err
}

func (c *recvConn) receive() (mem.Region, transport.Stamp, error) {
	err := c.err
	switch {
	case c.held > 0 && !c.shape.apart:
		err = fmt.Errorf("ib: next without release")
	case c.held == c.shape.ring:
		err = fmt.Errorf("ib: next while all %d slots are held", c.held)
	case err == nil:
		err = c.arrival()
	}
	if err != nil {
		return mem.Region{}, transport.Stamp{}, err
	}
	n, at := c.next, c.shape.at(c.next)
	var h header
	if h, c.err = c.shape.header(c.area.bytes[at:], n, c.due().bytes); c.err != nil {
		return mem.Region{}, transport.Stamp{}, c.err
	}
	c.next++
	c.held++
	c.users.Add(1)
	if c.shape.apart {
		return c.payloads.Slice(c.shape.payloadAt(n), h.length), h.stamp, nil
	}
	return mem.Host(c.area.bytes[at+headerLen:][:h.length]), h.stamp, nil
}

func (c *recvConn) arrived(n uint64) *arrival { return &c.wrote[n%uint64(len(c.wrote))] }

func (c *recvConn) due() *arrival { return c.arrived(c.next) }

// arrival waits until the slot that is due has arrived and can be seen.
func (c *recvConn) arrival() error {
	if err := c.t.cfg.Guard.Aborted(); err != nil {
		return err
	}
	w := pace.Waiter{Guard: c.t.cfg.Guard, Spin: c.t.cfg.Spin}
	for !c.due().seen {
		if err := c.look(); err != nil || c.due().seen {
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
	return nil
}

// look takes completions. Its error says why the slot that is due will never be seen.
func (c *recvConn) look() error {
	end := c.ended() // read before the completions: slots that came before the end count
	if c.bye.Load() && c.next >= c.last.Load() {
		end = fifo.ErrClosed
	}
	c.progress()
	switch due := c.due(); {
	case due.seen:
		return nil
	case c.err != nil:
		return c.err
	case due.bytes > 0: // the slot is being read back
		end = c.stopped()
	}
	if end != nil {
		return end
	}
	return c.link()
}

// Arrived is how many slots Next gives now without waiting; 1 if it gives an error.
func (c *recvConn) Arrived() (n int) {
	if c.enter() != nil {
		return 1
	}
	err := c.look()
	for n < c.shape.ring-c.held && c.arrived(c.next+uint64(n)).seen {
		n++
	}
	c.leave()
	if err != nil {
		return max(n, 1)
	}
	return n
}

// Release gives the oldest slot of Next back.
func (c *recvConn) Release() error {
	held := c.held > 0
	if held {
		c.held--
		defer c.unuse()
	}
	if err := c.enter(); err != nil {
		return err
	}
	var err error
	if held {
		*c.arrived(c.back) = arrival{}
		c.back++
		c.tell()
	} else {
		err = fmt.Errorf("ib: release without next")
	}
	c.leave()
	return err
}

// tell gives credits once there are enough of them (see shape).
func (c *recvConn) tell() {
	if c.back-c.told.Load() < uint64(c.shape.lag) {
		return
	}
	for _, r := range c.rails {
		if p := r.phase(); p == railUp || p == railTried {
			if err := r.restock(); err != nil {
				c.fail(r, err.Error(), false)
			}
		}
	}
	full := c.live(c.back)
	if full != nil && full.posted >= full.depth {
		return // progress tries again
	}
	c.told.Store(c.back)
	for r := c.live(c.back); r != nil; r = c.live(c.back) {
		err := r.write(c.back, uint32(c.back), piece{byValue: true}, piece{})
		if err == nil {
			return
		}
		c.fail(r, err.Error(), false)
	}
}

// progress takes all completions: a slot that was sent again may be behind others.
func (c *recvConn) progress() {
	for _, r := range c.rails {
		for more := true; more; {
			done, full, err := r.poll()
			if err != nil {
				c.fail(r, err.Error(), false)
			}
			for i := range done {
				c.complete(r, &done[i])
			}
			more = full
		}
		if r.phase() == railCalled {
			c.rejoin(r)
		}
	}
	c.tell() // credits that could not be posted before
}

func (c *recvConn) complete(r *rail, w *ibverbs.WC) {
	isReceive, isRead := w.ID&receiveID != 0, w.ID&(receiveID|readID) == readID
	if !isReceive && !isRead {
		r.posted--
	}
	switch {
	case isRead && w.Status != ibverbs.Success:
		c.lose(r, w.Status.String())
	case isRead:
		if n := w.ID & slotID; n >= c.back { // n < back: a slot that came twice
			c.arrived(n).seen = true
		}
	case w.Status != ibverbs.Success:
		if isReceive {
			r.used++
		}
		if r.phase() != railCalled { // in that phase it is a receive that the dead queue pair gives back
			c.fail(r, w.Status.String(), false)
		}
	case isReceive:
		r.used++
		// A slot that was sent again may come twice.
		if ahead := int32(w.Imm - uint32(c.back)); ahead >= 0 && int(ahead) < c.shape.ring {
			c.came(c.back+uint64(ahead), int(w.Bytes), r)
		}
	}
}

// came notes that slot number n has come, and has it read back where that is needed. A slot that comes
// again over another rail is read back again: the first device may have failed.
func (c *recvConn) came(n uint64, bytes int, r *rail) {
	a := c.arrived(n)
	a.bytes = bytes
	if r.loop == nil {
		a.seen = true
		return
	}
	at := c.shape.at(n) - headerLen // the unused bytes before the header
	err := r.readBack(n, uint64(c.payloads.Ptr())+uint64(c.shape.payloadAt(n)), c.area.addr()+uint64(at),
		c.area.mrs[r.port.dev].LKey)
	if err != nil {
		c.lose(r, err.Error())
	}
}

// lose ends a connection of which some slots can no longer be seen.
func (c *recvConn) lose(r *rail, reason string) {
	if c.err == nil {
		c.err = &LinkError{Port: r.port.String(), Peer: r.peer.Port, Reason: "what came over it cannot be read back: " +
			reason}
	}
}

// said handles a message of the peer.
func (c *recvConn) said(m message) {
	if m.kind == goodbye {
		c.last.Store(m.count)
		c.bye.Store(true)
	}
}

// finish tells the sender that the connection has ended.
func (c *recvConn) finish() {
	c.control.say(message{kind: goodbye})
	c.destroy()
}
