package socket

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/ringo-go/ringo/fifo"
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
	ctx, cancel := listen.Patience(t.cfg.Guard, t.ends.Away(), t.log)
	defer cancel()
	routes, err := t.routes(peer, where)
	if err != nil {
		return nil, err
	}
	p := part{streams: cmp.Or(t.opt.Streams, len(routes.spread), 1)}
	rand.Read(p.conn[:])
	var streams []net.Conn
	for ; p.stream < p.streams; p.stream++ {
		c, err := t.dialStream(ctx, peer, routes.of(p.stream), p)
		if err != nil {
			for _, c := range streams {
				c.Close()
			}
			return nil, err
		}
		streams = append(streams, c)
	}
	s, err := newSendConn(t, peer.Rank, streams)
	if err != nil {
		return nil, err
	}
	if !t.ends.Keep(s) {
		s.Close()
		return nil, fifo.ErrClosed
	}
	return s, nil
}

// A route is a socket on which a peer listens.
type route struct {
	listen.Target
	ip netip.Addr // zero if it has none
}

// routes are the sockets that a peer offers: either best, the list that all streams try in order, or
// spread, among which streams are spread.
type routes struct{ best, spread []route }

// routes are what an address offers this rank.
func (t *Transport) routes(peer transport.Info, where address) (w routes, err error) {
	tcp := func(addr string, ip netip.Addr) route {
		return route{listen.Target{Network: "tcp", Addr: addr, TLS: t.opt.TLS, Sockets: t.opt.Sockets}, ip}
	}
	if where.Given != "" {
		w.best = append(w.best, tcp(where.Given, netip.Addr{}))
		return w, nil
	}
	if where.Unix != "" && peer.Host == t.cfg.Self.Host && t.opt.Network != "tcp" && t.opt.Sockets == nil {
		w.best = append(w.best, route{Target: listen.Target{Network: "unix", Addr: where.Unix}})
	}
	if t.opt.Network != "unix" {
		for _, p := range where.TCP {
			p.At = t.scoped(p.At)
			w.spread = append(w.spread, tcp(p.String(), p.At.Addr()))
		}
	}
	switch {
	case w.best == nil && w.spread == nil:
		return w, fmt.Errorf("it offers no socket that this rank may use (network %q)", t.opt.Network)
	case w.best != nil: // the others are for when it fails
		w.best, w.spread = append(w.best, w.spread...), nil
	case len(w.spread) > 0:
		at := t.opt.Rail % len(w.spread)
		w.spread = slices.Concat(w.spread[at:], w.spread[:at])
	}
	return w, nil
}

// of are the routes for a stream, the best first.
func (w routes) of(stream int) []route {
	if len(w.spread) == 0 {
		return w.best
	}
	at := stream % len(w.spread)
	return slices.Concat(w.spread[at:], w.spread[:at])
}

// dialStream tries the routes, best first. It tries again if a connection was made and broke: the
// peer may have been too busy to receive it.
func (t *Transport) dialStream(ctx context.Context, peer transport.Info, routes []route, p part) (c net.Conn,
	err error) {
	r := &listen.Request{From: t.cfg.Self.Rank, To: peer.Rank, Limits: t.cfg.Limits, Rest: p.bytes()}
	err = listen.Retry(ctx, func() error {
		var failed error
		list := t.lameLast(routes)
		for i, w := range list {
			if c, err = listen.Dial(ctx, w.Target, t.cfg.Key, protocol, r, nil); err == nil {
				if i > 0 {
					t.blame(peer, list[0], failed)
				}
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

// lameLast puts routes last that were not reached before.
func (t *Transport) lameLast(routes []route) []route {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lame) == 0 {
		return routes
	}
	return slices.SortedStableFunc(slices.Values(routes),
		func(a, b route) int { return cmp.Compare(btoi(t.lame[a.ip]), btoi(t.lame[b.ip])) })
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// blame remembers that route w failed where another one did not.
func (t *Transport) blame(peer transport.Info, w route, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if dial, ok := errors.AsType[*net.OpError](err); !ok || dial.Op != "dial" || w.Network != "tcp" || t.lame[w.ip] {
		return
	}
	if t.lame == nil {
		t.lame = map[netip.Addr]bool{}
	}
	t.lame[w.ip] = true
	t.log.Warn("socket: an interface was not reached; its streams take another (RINGO_SOCKET_IFNAME names those to use)",
		"rank", t.cfg.Self.Rank, "peer", peer.Rank, "address", w.ip, "err", err)
}

// scoped adds this rank's zone to a link-local address, which means nothing without one.
func (t *Transport) scoped(a netip.AddrPort) netip.AddrPort {
	if !a.Addr().Is6() || !a.Addr().IsLinkLocalUnicast() {
		return a
	}
	t.mu.Lock()
	zone := t.zone
	t.mu.Unlock()
	if zone == "" {
		if ifs, err := t.ifaces(); err == nil {
			if p, err := choose(ifs, t.opt); err == nil {
				zone = p.Iface
			}
		}
	}
	return netip.AddrPortFrom(a.Addr().WithZone(zone), a.Port())
}
