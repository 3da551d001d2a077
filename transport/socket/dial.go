package socket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// Dial connects to peer, with as many streams as Options say.
func (t *Transport) Dial(peer transport.Info, addr []byte) (transport.SendConn, error) {
	c, err := t.dial(peer, addr)
	if err != nil {
		return nil, fmt.Errorf("socket: dial rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

func (t *Transport) dial(peer transport.Info, addr []byte) (*sendConn, error) {
	if t.bad != nil {
		return nil, t.bad
	}
	where, err := parseAddress(addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := listen.Patience(t.cfg.Guard, t.ends.Away())
	defer cancel()
	p := part{streams: t.opt.Streams}
	rand.Read(p.conn[:])
	var streams []net.Conn
	for ; p.stream < p.streams; p.stream++ {
		c, err := t.dialStream(ctx, peer, where, p)
		if err != nil {
			for _, c := range streams {
				c.Close()
			}
			return nil, err
		}
		streams = append(streams, c)
	}
	s, err := newSendConn(t, streams)
	if err != nil {
		return nil, err
	}
	if !t.ends.Keep(s) {
		s.Close()
		return nil, fifo.ErrClosed
	}
	return s, nil
}

// dialStream tries the sockets that the address offers, best first. It tries again if a
// connection was made and broke: the peer may have been too busy to receive it.
func (t *Transport) dialStream(ctx context.Context, peer transport.Info, where address, p part) (c net.Conn, err error) {
	type way struct {
		network, addr string
		tls           *secure.Config
	}
	var ways []way
	if where.Unix != "" && peer.Host == t.cfg.Self.Host && t.opt.Network != "tcp" {
		ways = append(ways, way{"unix", where.Unix, nil})
	}
	if where.TCP.IsValid() && t.opt.Network != "unix" {
		ways = append(ways, way{"tcp", t.scoped(where.TCP).String() + behind(where.Place), t.opt.TLS})
	}
	if ways == nil {
		return nil, fmt.Errorf("it offers no socket that this rank may use (network %q)", t.opt.Network)
	}
	r := &listen.Request{From: t.cfg.Self.Rank, To: peer.Rank, Limits: t.cfg.Limits, Rest: p.bytes()}
	err = listen.Retry(ctx, func() error {
		var failed error
		for _, w := range ways {
			if c, err = listen.Dial(ctx, w.network, w.addr, w.tls, t.cfg.Key, protocol, r, nil); err == nil {
				return nil
			}
			// A closed Unix socket is not the last word if TCP fails in another way.
			if failed == nil || errors.Is(failed, transport.ErrClosed) {
				failed = err
			}
		}
		return failed
	})
	return c, err
}

// scoped adds the zone without which a link-local address means nothing.
func (t *Transport) scoped(a netip.AddrPort) netip.AddrPort {
	if !a.Addr().Is6() || !a.Addr().IsLinkLocalUnicast() {
		return a
	}
	t.mu.Lock()
	zone := t.zone
	t.mu.Unlock()
	if zone == "" {
		if ifs, err := interfaces(); err == nil {
			if p, err := choose(ifs, t.opt); err == nil {
				zone = p.Iface
			}
		}
	}
	return netip.AddrPortFrom(a.Addr().WithZone(zone), a.Port())
}
