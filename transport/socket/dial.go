package socket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
)

const (
	dialTime  = 20 * time.Second // for all attempts together
	dialPause = 20 * time.Millisecond
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
	ctx, cancel := t.patience()
	defer cancel()
	h := hello{
		streams: t.opt.Streams, from: t.cfg.Self.Rank, to: peer.Rank, limits: t.cfg.Limits,
	}
	rand.Read(h.conn[:])
	var streams []net.Conn
	for h.stream = 0; h.stream < h.streams; h.stream++ {
		c, err := t.dialStream(ctx, peer, where, h)
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
	if !t.keep(s) {
		s.Close()
		return nil, fifo.ErrClosed
	}
	return s, nil
}

// dialStream tries what the address offers, best first, and again when the way
// was there but broke: the peer may have been too busy to receive us.
func (t *Transport) dialStream(ctx context.Context, peer transport.Info, where address, h hello) (net.Conn, error) {
	sameHost := peer.Host == t.cfg.Self.Host
	for pause := dialPause; ; pause *= 2 {
		var errs []error
		if where.Unix != "" && sameHost && t.opt.Network != "tcp" {
			c, err := t.connect(ctx, "unix", where.Unix, h)
			if err == nil {
				return c, nil
			}
			errs = append(errs, err)
		}
		if where.TCP.IsValid() && t.opt.Network != "unix" {
			c, err := t.connect(ctx, "tcp", t.scoped(where.TCP).String(), h)
			if err == nil {
				return c, nil
			}
			errs = append(errs, err)
		}
		err := errors.Join(errs...)
		if err == nil {
			return nil, fmt.Errorf("it offers no socket that this rank may use (network %q)", t.opt.Network)
		}
		if _, stranger := errors.AsType[*strangerError](err); stranger {
			return nil, err
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); cause != errDialTime {
				return nil, cause
			}
			return nil, fmt.Errorf("%w: %w; is a firewall between, or the interface the wrong one?", errDialTime, err)
		case <-time.After(pause):
		}
	}
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

func (t *Transport) connect(ctx context.Context, network, addr string, h hello) (net.Conn, error) {
	d := net.Dialer{Timeout: handshakeTime, KeepAlive: -1}
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(handshakeTime))
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	err = greet(c, t.cfg.Key, h)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("handshake with %s %s: %w", network, addr, err)
	}
	return c, nil
}

var errDialTime = fmt.Errorf("no connection in %v", dialTime)

// patience is a context that ends with the Guard, with Close, or after dialTime.
func (t *Transport) patience() (context.Context, context.CancelFunc) {
	ctx, timeout := context.WithTimeoutCause(context.Background(), dialTime, errDialTime)
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(patience)
		defer tick.Stop()
		for {
			if err := t.cfg.Guard.Err(); err != nil {
				cancel(err)
			}
			select {
			case <-t.away:
				cancel(fifo.ErrClosed)
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		timeout()
		<-done
	}
}
