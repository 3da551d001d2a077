package plugin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// Dial connects to peer.
func (t *Transport) Dial(peer transport.Info, addr []byte) (transport.SendConn, error) {
	ctx, cancel := listen.Patience(t.cfg.Guard, t.ends.Away(), t.log)
	defer cancel()
	c, err := t.dial(ctx, peer, addr, nil)
	if err != nil {
		return nil, fmt.Errorf("plugin: dial rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

// dial makes a connection, a placed one if there are slots.
func (t *Transport) dial(ctx context.Context, peer transport.Info, addr []byte, slots *mem.Region) (*sendConn, error) {
	if !t.ends.Enter() {
		return nil, fifo.ErrClosed
	}
	defer t.ends.Leave()
	t.mu.Lock()
	opened := t.opened
	t.mu.Unlock()
	switch name, _, _ := strings.Cut(string(addr), "\n"); {
	case !opened:
		return nil, errors.New("dial before listen")
	case name != t.lib.Name:
		return nil, fmt.Errorf("it uses network %q, this rank %q; give all ranks the same NCCL_NET_PLUGIN", name, t.lib.Name)
	}
	var offer []byte
	var conn net.Conn
	request := &listen.Request{From: t.cfg.Self.Rank, To: peer.Rank, Limits: t.cfg.Limits, Rest: []byte{1}} // comms
	if slots != nil {
		request.Rest[0] = 2
	}
	err := listen.Retry(ctx, func() (err error) {
		conn, err = listen.Dial(ctx, listen.Target{Network: "tcp", Addr: t.scoped(addr)}, t.cfg.Key, protocol, request,
			func(c net.Conn) (err error) {
				offer, err = hearHandles(c, int(request.Rest[0]))
				return err
			})
		return err
	})
	if err != nil {
		return nil, err
	}
	return t.connect(ctx, conn, peer.Rank, offer, slots)
}

// hearHandles receives the answer of a listener: its device, and a handle for each comm.
func hearHandles(c net.Conn, comms int) ([]byte, error) {
	kind, body, err := hear(c)
	switch {
	case err != nil:
		return nil, err
	case kind == sayRefused:
		return nil, &listen.Refusal{Reason: string(body)}
	case kind != sayHandle || len(body) != 4+comms*handleBytes:
		return nil, &listen.Refusal{Reason: fmt.Sprintf("with an unknown control message %q of %d bytes", kind, len(body))}
	}
	return body, nil
}

// connect has the plugin connect to the handles in an offer, which hearHandles returned.
func (t *Transport) connect(ctx context.Context, conn net.Conn, peer int, offer []byte, slots *mem.Region) (*sendConn,
	error) {
	// The device of the same number: that is how rails are wired.
	dev := t.devices[int(binary.BigEndian.Uint32(offer))%len(t.devices)]
	c := newSendConn(newHalf(t, dev, peer, conn, slots != nil))
	dev.conns.Add(int32(len(c.queues()))) // counted without a limit: the listener has counted the connection already
	if !t.ends.Go(func() { c.ctl.read(func() {}) }) {
		c.half.end(fnCloseSend)
		return nil, fifo.ErrClosed
	}
	var err error
	for i, q := range c.queues() {
		copy(q.call.handle[:], offer[4+i*handleBytes:])
		if err == nil {
			err = c.setUp(ctx, fnConnect, q, q.call.connect)
		}
	}
	if _, own := errors.AsType[*Error](err); own {
		err = c.ctl.verdict(err, t.cfg.Guard) // the peer may have failed first
	}
	if err == nil {
		err = c.knowRing(ctx)
	}
	if err == nil && slots != nil {
		err = c.settle(ctx, *slots)
	}
	if err == nil {
		err = c.ctl.poll(ctx, func() (bool, error) { return isClosed(c.ctl.ready), nil })
	}
	if err != nil && c.ctl.why() == fifo.ErrClosed {
		c.setup.post(c.finish)
		err = nil // the peer has closed already: the first Publish returns that
	}
	if err != nil {
		_ = say(conn, sayRefused, []byte(err.Error())) // a peer that has gone needs none
		if !t.ends.Go(func() { c.half.end(fnCloseSend) }) {
			c.half.end(fnCloseSend)
		}
		return nil, err
	}
	t.enlist(c.half)
	if !t.ends.Keep(c) || c.evicted() {
		c.Close()
		return nil, fifo.ErrClosed
	}
	return c, nil
}

// finish completes connects that a goodbye has overtaken: a plugin can close only what is
// connected. The peer had accepted, so this takes a moment.
func (c *sendConn) finish() {
	for _, q := range c.queues() {
		for tries := 0; q.call.comm == 0 && tries < 20 && q.call.connect() == 0; tries++ {
			nap(time.Millisecond)
		}
	}
}

// setUp calls connect or accept until the queue has a comm.
func (h *half) setUp(ctx context.Context, f int, q *queue, try func() Result) error {
	err := h.ctl.poll(ctx, func() (done bool, err error) {
		got := false
		err = h.setup.do(ctx, func() error {
			err := h.result(f, try())
			got = q.call.comm != 0
			return err
		})
		return err == nil && got, err
	})
	if isClosed(h.ctl.parted) {
		return err
	}
	return h.outcome(f, err)
}

// outcome is the error of a call of function f as an *Error, nil if err is nil.
func (h *half) outcome(f int, err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	return h.blamed(f, err)
}

// scoped is the address to dial; a link-local one needs this rank's zone, which scoped adds.
func (t *Transport) scoped(addr []byte) string {
	_, where, _ := strings.Cut(string(addr), "\n")
	door, id, _ := strings.Cut(where, "#")
	a, err := netip.ParseAddrPort(door)
	if err != nil || !a.Addr().Is6() || !a.Addr().IsLinkLocalUnicast() {
		return where
	}
	return netip.AddrPortFrom(a.Addr().WithZone(t.endpoint.Zone()), a.Port()).String() + "#" + id
}
