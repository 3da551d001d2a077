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
	wrote []int  // by slot of the ring: bytes that have arrived, 0 for none
	next  uint64 // number of the slot that is due
	held  bool   // it was given out
	err   error  // of a malformed slot

	bye  atomic.Bool
	last atomic.Uint64 // slots that the sender has published in all, if bye
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
	case c.held:
		err = fmt.Errorf("ib: next without release")
	case err == nil:
		err = c.arrival()
	}
	if err != nil {
		return mem.Region{}, transport.Stamp{}, err
	}
	at := c.shape.at(c.next)
	var h header
	if h, c.err = parseHeader(c.area.bytes[at:], c.next, c.wrote[c.index()], c.shape.max); c.err != nil {
		return mem.Region{}, transport.Stamp{}, c.err
	}
	c.held = true
	c.users.Add(1)
	return mem.Host(c.area.bytes[at+headerLen:][:h.length]), h.stamp, nil
}

func (c *recvConn) index() int { return int(c.next % uint64(len(c.wrote))) }

// arrival waits until the slot that is due has arrived.
func (c *recvConn) arrival() error {
	if err := c.t.cfg.Guard.Aborted(); err != nil {
		return err
	}
	w := pace.Waiter{Guard: c.t.cfg.Guard, Spin: c.t.cfg.Spin}
	for c.wrote[c.index()] == 0 {
		end := c.ended() // before what arrived is looked at: a peer's last words count
		if c.bye.Load() && c.next >= c.last.Load() {
			end = fifo.ErrClosed
		}
		c.progress()
		if c.wrote[c.index()] != 0 {
			break
		}
		if end != nil {
			return end
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
	return nil
}

// Release gives the slot of the last Next back.
func (c *recvConn) Release() error {
	held := c.held
	if held {
		c.held = false
		defer c.unuse()
	}
	if err := c.enter(); err != nil {
		return err
	}
	var err error
	if held {
		c.wrote[c.index()] = 0
		c.next++
		c.tell()
	} else {
		err = fmt.Errorf("ib: release without next")
	}
	c.leave()
	return err
}

// tell gives credits once there are enough of them (see shape).
func (c *recvConn) tell() {
	if c.next-c.told.Load() < uint64(c.shape.lag) {
		return
	}
	for _, r := range c.rails {
		if !r.down.Load() {
			if err := r.restock(); err != nil {
				c.fail(r, err.Error(), false)
			}
		}
	}
	full := c.live(c.next)
	if full != nil && full.posted >= full.depth {
		return // progress tries again
	}
	c.told.Store(c.next)
	for r := c.live(c.next); r != nil; r = c.live(c.next) {
		err := r.write(c.next, nil, nil, 0, 0, uint32(c.next))
		if err == nil {
			return
		}
		c.fail(r, err.Error(), false)
	}
}

// progress takes all completions: the slot that is due may be behind others, if it was sent again.
func (c *recvConn) progress() {
	for _, r := range c.rails {
		for more := true; more; {
			done, err := r.poll()
			if err != nil {
				c.fail(r, err.Error(), false)
			}
			for i := range done {
				c.complete(r, &done[i])
			}
			more = len(done) == len(r.wcs)
		}
	}
	c.tell() // credits for which there was no room
}

func (c *recvConn) complete(r *rail, w *ibverbs.WC) {
	isReceive := w.ID&receiveID != 0
	if !isReceive {
		r.posted--
	}
	switch {
	case w.Status != ibverbs.Success:
		c.fail(r, w.Status.String(), false)
	case isReceive:
		r.used++
		// A slot that was sent again may come twice.
		if ahead := int32(w.Imm - uint32(c.next)); ahead >= 0 && int(ahead) < c.shape.ring {
			c.wrote[(c.next+uint64(ahead))%uint64(len(c.wrote))] = int(w.Bytes)
		}
	}
}

// said is called with what the peer says.
func (c *recvConn) said(m message) {
	if m.kind == goodbye {
		c.last.Store(m.count)
		c.bye.Store(true)
	}
}

// finish tells the sender that the connection has ended.
func (c *recvConn) finish() {
	c.line.say(message{kind: goodbye})
	c.destroy()
}
