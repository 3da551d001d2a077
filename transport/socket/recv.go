package socket

import (
	"fmt"
	"net"
	"sync/atomic"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/pace"
)

// A recvConn is the receiving end.
type recvConn struct {
	t      *Transport
	max    int
	inlets []*inlet
	next   uint64 // number of the slot that is due
	held   *inlet // has the slot of the last Next, nil after Release
	flags  uint8  // of the held slot
	idle   int    // slots released since credits were last given
	err    error  // why nothing more is received
	closed atomic.Bool
}

// An inlet is the receiving side of one stream. Its buffer holds one slot at a time, so
// it stays in the cache.
type inlet struct {
	*stream
	buf  []byte // a frame from the start, and bytes read beyond it
	have int    // bytes in buf
	last int    // length of the last frame, the guess for the next
	used int    // length of the frame of the held slot
	owed int    // credits not yet given
	coin [1]byte
}

// minRead is how many bytes a read asks for at least when the length of the next
// frame is unknown: a small slot then comes with its header in one call.
const minRead = 4096

func newRecvConn(t *Transport, streams []net.Conn) (*recvConn, error) {
	c := &recvConn{t: t, max: t.cfg.Limits.SlotBytes}
	all, err := newStreams(t, streams)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		const pad = 64 - headerLen // the payload on a cache line
		buf := make([]byte, pad+headerLen+c.max+minRead)[pad:]
		c.inlets = append(c.inlets, &inlet{stream: s, buf: buf, last: minRead})
	}
	return c, nil
}

// Next waits for the slot that is due and receives it into the buffer.
func (c *recvConn) Next() (mem.Region, transport.Stamp, error) {
	if err := c.ready(); err != nil {
		return mem.Region{}, transport.Stamp{}, err
	}
	in := c.inlet()
	for in.have < headerLen {
		n, err := c.read(in, in.buf[in.have:max(in.last, minRead)], nil)
		if err != nil {
			return mem.Region{}, transport.Stamp{}, err
		}
		in.have += n
	}
	h, err := c.header(in)
	if err != nil {
		return mem.Region{}, transport.Stamp{}, err
	}
	in.used = headerLen + h.length
	for in.have < in.used {
		n, err := c.read(in, in.buf[in.have:in.used], nil)
		if err != nil {
			return mem.Region{}, transport.Stamp{}, err
		}
		in.have += n
	}
	in.last = in.used
	c.held, c.flags = in, h.flags
	c.next++
	return mem.Host(in.buf[headerLen:in.used]), h.stamp, nil
}

// NextInto receives the payload of the slot that is due straight into dst.
func (c *recvConn) NextInto(dst mem.Region) (transport.Stamp, error) {
	if err := c.ready(); err != nil {
		return transport.Stamp{}, err
	}
	in, b, got := c.inlet(), dst.Bytes(), 0
	for in.have < headerLen {
		n, err := c.read(in, in.buf[in.have:headerLen], b)
		if err != nil {
			return transport.Stamp{}, err
		}
		got = max(0, in.have+n-headerLen)
		in.have += n - got
	}
	h, err := c.header(in)
	if err != nil {
		return transport.Stamp{}, err
	}
	if h.length != len(b) {
		c.err = &transport.LengthError{Got: h.length, Want: len(b)}
		return h.stamp, c.err
	}
	if in.have > headerLen { // an earlier Next read beyond its frame
		got = copy(b, in.buf[headerLen:in.have])
	}
	in.drop(headerLen + min(got, in.have-headerLen))
	for got < len(b) {
		n, err := c.read(in, b[got:], nil)
		if err != nil {
			c.err = err // the bytes in dst cannot be received again
			return transport.Stamp{}, err
		}
		got += n
	}
	c.next++
	c.repay(in, h.flags)
	return h.stamp, nil
}

// Release gives the slot of the last Next back.
func (c *recvConn) Release() error {
	in := c.held
	if in == nil {
		return fmt.Errorf("socket: release without next")
	}
	c.held = nil
	in.drop(in.used)
	if c.closed.Load() {
		return fifo.ErrClosed
	}
	c.repay(in, c.flags)
	return nil
}

func (c *recvConn) inlet() *inlet { return c.inlets[c.next%uint64(len(c.inlets))] }

// drop forgets the first n bytes of the buffer.
func (in *inlet) drop(n int) {
	in.have = copy(in.buf, in.buf[n:in.have])
}

// ready is nil if a slot may be received now.
func (c *recvConn) ready() error {
	switch {
	case c.closed.Load():
		return fifo.ErrClosed
	case c.held != nil:
		return fmt.Errorf("socket: next without release")
	case c.err != nil:
		return c.err
	}
	return c.t.cfg.Guard.Aborted()
}

// header parses the header at the start of the buffer.
func (c *recvConn) header(in *inlet) (header, error) {
	h, err := parseHeader(in.buf[:in.have], c.next, c.max)
	switch {
	case err != nil:
		c.err = c.blame(err)
	case h.kind == kindGoodbye:
		c.err = fifo.ErrClosed
		for _, in := range c.inlets {
			in.endWriting() // the sender waits for this
		}
	}
	return h, c.err
}

// read waits until the kernel has bytes, and reads them into b and then b2.
func (c *recvConn) read(in *inlet, b, b2 []byte) (int, error) {
	w := pace.Waiter{Guard: c.t.cfg.Guard, Spin: c.t.cfg.Spin, Slow: slowTries}
	for {
		n, err := in.stream.read(b, b2)
		if err == nil {
			return n, nil
		}
		if err != errAgain {
			c.err = c.blame(err)
			return 0, c.err
		}
		sleep, err := w.Pause()
		if err != nil {
			return 0, err
		}
		if sleep {
			if err := in.poll(true, false, pace.Patience); err != nil {
				return 0, c.blame(err)
			}
		}
		if c.closed.Load() {
			return 0, fifo.ErrClosed
		}
	}
}

// repay gives credits for slots whose memory was lent: at once if the sender waits for
// them, else in one message for half a queue. Slots that were not lent count towards the
// half too: otherwise a credit might wait for slots that the sender cannot send before it
// gets the credit.
func (c *recvConn) repay(in *inlet, flags uint8) {
	c.idle++
	if flags&flagLent != 0 {
		in.owed++
	}
	if flags&flagSoon == 0 && c.idle < c.t.cfg.Limits.Slots/2 {
		return
	}
	c.idle = 0
	for _, in := range c.inlets {
		for in.owed > 0 {
			in.coin[0] = byte(min(in.owed, 255))
			if _, err := in.write(in.coin[:]); err != nil {
				break // a full socket is tried again, a broken one shows at the next read
			}
			in.owed -= int(in.coin[0])
		}
	}
}

func (c *recvConn) blame(err error) error {
	if c.closed.Load() {
		return fifo.ErrClosed
	}
	return broken(err)
}

// Close ends the connection, and tells the sender so.
func (c *recvConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.t.ends.Forget(c)
	for _, in := range c.inlets {
		if c.t.cfg.Guard.Aborted() == nil {
			in.farewell()
		}
		in.interrupt() // Close waits for sleepers: wake them
		in.close()
	}
	return nil
}
