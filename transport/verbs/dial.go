package verbs

import (
	"fmt"
	"net"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// Dial connects to peer: a queue pair on each of up to Options.Rails ports.
func (t *Transport) Dial(peer transport.Info, addr []byte) (transport.SendConn, error) {
	c, err := t.dial(peer, string(addr))
	if err != nil {
		return nil, fmt.Errorf("ib: dial rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

func (t *Transport) dial(peer transport.Info, addr string) (*sendConn, error) {
	ports, err := t.open()
	if err != nil {
		return nil, err
	}
	defer t.work.Done()
	// Ranks of a host begin with different ports.
	var mine []int
	for i := range min(t.opt.Rails, len(ports)) {
		mine = append(mine, (t.cfg.Self.Rank+i)%len(ports))
	}
	base, err := t.newConn(peer.Rank, mine)
	if err != nil {
		return nil, err
	}
	c := &sendConn{conn: base, slots: make([]sending, base.shape.ring), reserved: -1}
	fail := func(err error) (*sendConn, error) {
		c.abandon()
		return nil, err
	}
	var answer *hello
	ctx, cancel := listen.Patience(t.cfg.Guard, t.away)
	defer cancel()
	r := &listen.Request{From: t.cfg.Self.Rank, To: peer.Rank, Limits: t.cfg.Limits}
	err = listen.Retry(ctx, func() error {
		socket, err := listen.Dial(ctx, "tcp", addr, t.cfg.Key, protocol, r, func(s net.Conn) (err error) {
			if err = writeHello(s, c.hello(mine)); err == nil {
				answer, err = readHello(s)
			}
			return err
		})
		if err == nil {
			c.line.conn = socket
		}
		return err
	})
	switch {
	case err != nil:
		return fail(err)
	case answer.Refused != "":
		return fail(&listen.Refusal{Reason: answer.Refused})
	}
	c.to = answer.Addr
	if err := c.connect(answer.Rails); err != nil {
		return fail(err)
	}
	c.begin(c.said)
	if !t.keep(c) {
		c.Close()
		<-c.done
		areas.give(c.area)
		return nil, fifo.ErrClosed
	}
	return c, nil
}

// newConn makes an end with rails on the ports of these indices.
func (t *Transport) newConn(peer int, ports []int) (*conn, error) {
	c := &conn{t: t, peer: peer, shape: t.shape, done: make(chan struct{}), line: &line{done: make(chan struct{})}}
	var err error
	if c.area, err = areas.take(t.shape.size(), t.devices); err != nil {
		return nil, err
	}
	for i, p := range ports {
		r, err := newRail(t.ports[p], t.shape)
		if err != nil {
			c.abandon()
			return nil, err
		}
		r.index = i
		c.rails = append(c.rails, r)
	}
	return c, nil
}

// abandon gives back an end that did not begin.
func (c *conn) abandon() {
	for _, r := range c.rails {
		r.destroy()
	}
	if c.line.conn != nil {
		c.line.conn.Close()
	}
	areas.give(c.area)
}

func (c *conn) hello(ports []int) *hello {
	h := &hello{Addr: c.area.addr()}
	for i, r := range c.rails {
		h.Rails = append(h.Rails, r.hello(ports[i], c.area))
	}
	return h
}

// connect connects all rails to the peer's.
func (c *conn) connect(peers []railHello) error {
	if len(peers) != len(c.rails) {
		return fmt.Errorf("%d rails here, %d there", len(c.rails), len(peers))
	}
	for i, r := range c.rails {
		if err := r.connect(peers[i], &c.t.opt); err != nil {
			return err
		}
	}
	return nil
}

// receive answers a caller of the listener. The connection of a rank that knows the key
// waits for Accept.
func (t *Transport) receive(s net.Conn) {
	t.mu.Lock()
	place := t.place
	t.mu.Unlock()
	r, err := listen.Answer(s, place, &t.cfg, protocol, func(*listen.Request) error { return nil })
	var c *recvConn
	if err == nil {
		c, err = t.adopt(r.From, s)
	}
	if err != nil {
		s.Close()
		if !place.Closed() {
			t.warn.Warn("ib: dropped a caller", "rank", t.cfg.Self.Rank, "from", s.RemoteAddr(), "err", err)
		}
		return
	}
	if !t.keep(c) {
		c.Close()
		<-c.done
		areas.give(c.area)
		return
	}
	t.arrived.Put(r.From, c)
}

// adopt makes the receiving end of a rank that knows the key.
func (t *Transport) adopt(from int, s net.Conn) (*recvConn, error) {
	stop := t.closeWithUs(s)
	defer stop()
	_ = s.SetDeadline(time.Now().Add(listen.HandshakeTime))
	h, err := readHello(s)
	if err != nil {
		return nil, err
	}
	c, err := t.accept(from, s, h)
	if err != nil {
		_ = writeHello(s, &hello{Refused: fmt.Sprintf("rank %d: %v", t.cfg.Self.Rank, err)})
		return nil, err
	}
	return c, nil
}

func (t *Transport) accept(from int, s net.Conn, h *hello) (*recvConn, error) {
	mine, err := t.match(h.Rails)
	if err != nil {
		return nil, err
	}
	base, err := t.newConn(from, mine)
	if err != nil {
		return nil, err
	}
	c := &recvConn{conn: base, wrote: make([]int, base.shape.ring)}
	if err = c.connect(h.Rails); err == nil {
		if err = writeHello(s, c.hello(mine)); err == nil {
			err = s.SetDeadline(time.Time{})
		}
	}
	if err != nil {
		c.abandon()
		return nil, err
	}
	c.line.conn = s
	c.begin(c.said)
	return c, nil
}

// match finds a port for each of a peer's rails: the one of the same index, or the next
// one that is on a network of the same kind.
func (t *Transport) match(rails []railHello) (mine []int, err error) {
	for i := range rails {
		var first error
		found := -1
		for k := range t.ports {
			at := (rails[i].Index + k) % len(t.ports)
			err := t.ports[at].suits(&rails[i])
			if err == nil {
				found = at
				break
			}
			if first == nil {
				first = err
			}
		}
		if found < 0 {
			return nil, first
		}
		mine = append(mine, found)
	}
	return mine, nil
}

// closeWithUs closes s if the Transport is closed before stop is called.
func (t *Transport) closeWithUs(s net.Conn) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-t.away:
			s.Close()
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
