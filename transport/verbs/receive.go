package verbs

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// receive answers a caller of the listener. The connection of a rank that knows the key
// waits for Accept.
func (t *Transport) receive(s net.Conn) {
	t.mu.Lock()
	endpoint := t.endpoint
	t.mu.Unlock()
	r, err := listen.Answer(s, endpoint, &t.cfg, protocol, func(*listen.Request) error { return nil })
	if err == nil {
		err = t.adopt(r.From, s)
	}
	if err != nil {
		s.Close()
		if !endpoint.Closed() {
			t.warn.Warn("ib: dropped a caller", "rank", t.cfg.Self.Rank, "from", s.RemoteAddr(), "err", err)
		}
	}
}

// adopt makes the receiving end of a rank that knows the key.
func (t *Transport) adopt(from int, s net.Conn) error {
	stop := t.closeWithUs(s)
	_ = s.SetDeadline(time.Now().Add(listen.HandshakeTime))
	c, mine, err := t.hear(from, s)
	stop() // before the end is kept, since closing that sends a goodbye over s
	if err != nil {
		return err
	}
	return t.answer(c, s, mine)
}

// hear reads a dialler's hello and makes the receiving end. The error is why there is none.
func (t *Transport) hear(from int, s net.Conn) (c *recvConn, mine []int, err error) {
	h, err := readHello(s)
	switch {
	case err != nil:
		return nil, nil, err
	case h.Refused != "":
		return nil, nil, fmt.Errorf("rank %d wants no connection: %s", from, h.Refused)
	}
	if c, mine, err = t.accept(from, h); err != nil {
		_ = writeHello(s, &hello{Refused: fmt.Sprintf("rank %d: %v", t.cfg.Self.Rank, err)})
	}
	return c, mine, err
}

// accept makes the receiving end, with rails on the ports of indices mine.
func (t *Transport) accept(from int, h *hello) (c *recvConn, mine []int, err error) {
	if mine, err = t.match(h.Rails); err != nil {
		return nil, nil, err
	}
	base, err := t.newConn(from, mine, t.form(h.Placed))
	if err != nil {
		return nil, nil, err
	}
	c = &recvConn{conn: base, wrote: make([]arrival, base.shape.ring)}
	c.side = c
	var peers []railHello
	for i, p := range mine {
		if p >= 0 {
			peers = append(peers, h.Rails[i])
		}
	}
	if err = c.connect(peers); err != nil {
		c.abandon()
		return nil, nil, err
	}
	return c, mine, nil
}

// answer puts the end where Accept finds it, and only then answers the dialler, so that a later dial of
// the same rank is accepted later. The answer is the first message on the line.
func (t *Transport) answer(c *recvConn, s net.Conn, mine []int) error {
	h := c.hello(mine)
	c.control.conn = s
	c.control.mu.Lock()
	c.begin(c.said)
	kept := t.ends.Keep(c.conn)
	err := fifo.ErrClosed
	if kept && t.arrived.Put(c.peer, c) {
		if err = writeHello(s, h); err == nil {
			err = s.SetDeadline(time.Time{})
		}
	}
	c.control.mu.Unlock()
	c.limp()
	if !kept {
		c.Close()
		<-c.done
	}
	return err
}

// Accept waits until peer has dialled.
func (t *Transport) Accept(peer transport.Info) (transport.RecvConn, error) {
	c, err := t.take(peer, false)
	if err != nil {
		return nil, fmt.Errorf("ib: accept rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

// take waits for a connection from peer, and refuses it if only one end is placed.
func (t *Transport) take(peer transport.Info, placed bool) (*recvConn, error) {
	c, err := t.arrived.Take(peer.Rank, t.cfg.Guard)
	if err == nil && c.shape.apart != placed {
		kind := map[bool]string{false: "has its slots in its own memory", true: "has them placed in the caller's"}
		err = fmt.Errorf("rank %d has dialled a connection that %s, rank %d accepts one that %s", peer.Rank, kind[!placed],
			t.cfg.Self.Rank, kind[placed])
		c.refuse(err)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// match finds a port for each of a peer's rails: the port that the rail names; -1 for none. If no rail
// gets a port, the first one gets any port that suits it.
func (t *Transport) match(rails []railHello) (mine []int, err error) {
	some := false
	for i := range rails {
		found := slices.IndexFunc(t.ports, func(p *port) bool { return p.String() == rails[i].To })
		if found >= 0 && (t.ports[found].suits(&rails[i]) != nil || !t.ports[found].active()) {
			found = -1
		}
		some = some || found >= 0
		mine = append(mine, found)
	}
	if some {
		return mine, nil
	}
	for at := range t.ports {
		if err = t.ports[at].suits(&rails[0]); err == nil {
			mine[0] = at
			return mine, nil
		}
	}
	return nil, err
}

// closeWithUs closes s if the Transport is closed before stop is called.
func (t *Transport) closeWithUs(s net.Conn) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-t.ends.Away():
			s.Close()
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
