package socket

import (
	"fmt"
	"net"
	"sync"

	"github.com/ringo-go/ringo/transport/internal/listen"
)

// receive answers a caller of a listener. A connection whose streams have all arrived
// waits for Accept.
func (t *Transport) receive(c net.Conn, at *listen.Endpoint) {
	from, streams, err := t.answer(c, at)
	if err == nil && streams == nil {
		return // more are to come
	}
	var r *recvConn
	if err == nil {
		r, err = newRecvConn(t, streams)
	}
	if err != nil {
		c.Close()
		if !t.ends.Closed() {
			t.warn.Warn("socket: dropped a caller", "rank", t.cfg.Self.Rank, "from", c.RemoteAddr(), "err", err)
		}
		return
	}
	if !t.ends.Keep(r) || !t.arrived.Put(from, r) {
		r.Close()
	}
}

// answer does the handshake. When c is the last stream of a connection it returns all
// of them.
func (t *Transport) answer(c net.Conn, at *listen.Endpoint) (from int, streams []net.Conn, err error) {
	var p part
	r, err := listen.Answer(c, at, &t.cfg, protocol, func(r *listen.Request) (err error) {
		if p, err = parsePart(r.Rest); err == nil {
			err = t.partly.wants(p)
		}
		return err
	})
	if err == nil {
		streams, err = t.partly.add(p, c)
	}
	return r.From, streams, err
}

// A puzzle holds connections of which some streams are still missing.
type puzzle struct {
	mu     sync.Mutex
	conns  map[[16]byte][]net.Conn // by stream; nil is missing
	closed bool
}

// wants is the reason why the puzzle refuses p, nil if the puzzle takes p.
func (z *puzzle) wants(p part) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.fits(p)
}

// fits is wants for a caller that holds mu.
func (z *puzzle) fits(p part) error {
	if got := z.conns[p.conn]; got != nil && (len(got) != p.streams || got[p.stream] != nil) {
		return fmt.Errorf("stream %d of %d does not belong to this connection", p.stream, p.streams)
	}
	return nil
}

// add returns all streams of a connection when c is the last that was missing,
// else nil. After an error c is still the caller's.
func (z *puzzle) add(p part, c net.Conn) ([]net.Conn, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.closed {
		return nil, net.ErrClosed
	}
	if err := z.fits(p); err != nil {
		return nil, err
	}
	if z.conns == nil {
		z.conns = map[[16]byte][]net.Conn{}
	}
	all := z.conns[p.conn]
	if all == nil {
		all = make([]net.Conn, p.streams)
		z.conns[p.conn] = all
	}
	all[p.stream] = c
	for _, c := range all {
		if c == nil {
			return nil, nil
		}
	}
	delete(z.conns, p.conn)
	return all, nil
}

// close closes the streams of connections that are not whole, for example because the
// rank that dialled has died.
func (z *puzzle) close() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.closed = true
	for _, all := range z.conns {
		for _, c := range all {
			if c != nil {
				c.Close()
			}
		}
	}
	clear(z.conns)
}
