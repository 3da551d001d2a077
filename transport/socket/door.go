package socket

import (
	"errors"
	"net"
	"sync"
	"time"
)

// A door receives whoever finds a listener. Each caller has its own goroutine
// and a short time to prove itself, so that nobody can hold up the others.
type door struct {
	t *Transport

	mu      sync.Mutex
	callers []net.Conn             // not yet proved, oldest first
	parts   map[[16]byte]*assembly // connections of which streams are missing
	closed  bool
}

// assembly is a connection whose streams come in one by one.
type assembly struct {
	streams []net.Conn
	missing int
}

const (
	handshakeTime = 5 * time.Second
	// maxCallers bounds the goroutines and descriptors that strangers can hold.
	// One more sends the oldest away: an honest handshake takes a round trip,
	// so it is never the oldest for long, and its dialler tries again.
	maxCallers = 256
)

func newDoor(t *Transport) *door {
	return &door{t: t, parts: make(map[[16]byte]*assembly)}
}

func (d *door) run(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, or a connection reset in the backlog
			d.t.log.Warn("socket: accept", "rank", d.t.cfg.Self.Rank, "err", err)
			select {
			case <-d.t.away:
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		if !d.admit(c) {
			c.Close()
			return
		}
		d.t.work.Go(func() { d.receive(c) })
	}
}

// admit makes room for a caller; false after close.
func (d *door) admit(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	if len(d.callers) == maxCallers {
		d.callers[0].Close() // its receive fails, logs and goes
		d.callers = d.callers[1:]
	}
	d.callers = append(d.callers, c)
	return true
}

// release takes a caller off the list, proved or not.
func (d *door) release(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, o := range d.callers {
		if o == c {
			d.callers = append(d.callers[:i:i], d.callers[i+1:]...)
			return
		}
	}
}

func (d *door) receive(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(handshakeTime))
	h, err := receive(c, d.t.cfg.Key, d.judge)
	d.release(c)
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		c.Close()
		if !d.t.isClosed() {
			d.t.log.Warn("socket: dropped a caller", "rank", d.t.cfg.Self.Rank, "from", c.RemoteAddr(), "err", err)
		}
		return
	}
	streams := d.assemble(h, c)
	if streams == nil {
		return
	}
	r, err := newRecvConn(d.t, h.from, streams)
	if err != nil {
		d.t.log.Warn("socket: dropped a caller", "rank", d.t.cfg.Self.Rank, "from", c.RemoteAddr(), "err", err)
		return
	}
	if !d.t.keep(r) || !d.t.arrived.Put(h.from, r) {
		r.Close()
	}
}

// judge sees only those who know the key.
func (d *door) judge(h hello) verdict {
	v := verdict{limits: d.t.cfg.Limits}
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.parts[h.conn]
	switch {
	case h.to != d.t.cfg.Self.Rank:
		v.code = wrongRank
	case h.limits != d.t.cfg.Limits:
		v.code = wrongLimits
	case a != nil && (len(a.streams) != h.streams || a.streams[h.stream] != nil):
		v.code = wrongStreams
	}
	return v
}

// assemble returns all streams of a connection when the last has come.
func (d *door) assemble(h hello, c net.Conn) []net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.parts[h.conn]
	if a == nil {
		a = &assembly{make([]net.Conn, h.streams), h.streams}
		d.parts[h.conn] = a
	}
	if d.closed || len(a.streams) != h.streams || a.streams[h.stream] != nil {
		c.Close()
		return nil
	}
	a.streams[h.stream] = c
	if a.missing--; a.missing > 0 {
		return nil
	}
	delete(d.parts, h.conn)
	return a.streams
}

// close sends all away who are not yet connected. A dialler that died between
// two of its streams is found here too.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, c := range d.callers {
		c.Close()
	}
	for _, a := range d.parts {
		for _, c := range a.streams {
			if c != nil {
				c.Close()
			}
		}
	}
	clear(d.parts)
}
