package verbs

import (
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/ringo-go/ringo/transport/internal/listen"
)

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
	if !t.ends.Keep(c.conn) {
		c.Close()
		<-c.done
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
	switch {
	case err != nil:
		return nil, err
	case h.Refused != "":
		return nil, fmt.Errorf("rank %d wants no connection: %s", from, h.Refused)
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
	c.side = c
	var peers []railHello
	for i, p := range mine {
		if p >= 0 {
			peers = append(peers, h.Rails[i])
		}
	}
	if err = c.connect(peers); err == nil {
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

// match finds a port for each of a peer's rails: the one that it means; -1 for none. If no rail has
// one, the first has any port of a kind that suits it.
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
