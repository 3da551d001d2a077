package plugin

import (
	"context"
	"encoding/binary"
	"net"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// receive answers a caller and makes the receiving end of his connection, which then waits
// for Accept.
func (t *Transport) receive(c net.Conn, at *listen.Place) {
	r, err := listen.Answer(c, at, &t.cfg, protocol, func(*listen.Request) error { return nil })
	if err != nil {
		c.Close()
		t.dropped(c, err)
		return
	}
	// The Guard's deadline is of an operation of this rank, which may not have begun.
	ctx, cancel := listen.Patience(new(fifo.Guard), t.away)
	defer cancel()
	conn, err := t.accept(ctx, c, r.From)
	if err != nil {
		t.dropped(c, err)
		return
	}
	if !t.keep(conn) || !t.arrived.Put(r.From, conn) {
		conn.Close()
		return
	}
	t.enlist(conn)
	// Now, so that connections are accepted in the order in which they were dialled.
	_ = say(c, sayReady, nil) // a caller who has gone shows at Next
}

func (t *Transport) dropped(c net.Conn, err error) {
	if !t.isClosed() {
		t.warn.Warn("plugin: dropped a caller", "rank", t.cfg.Self.Rank, "from", c.RemoteAddr(), "err", err)
	}
}

// accept has the plugin listen, tells the caller where, and waits for him. After an error c
// is closed and the caller knows the reason.
func (t *Transport) accept(ctx context.Context, c net.Conn, from int) (*recvConn, error) {
	dev, err := t.device()
	if err != nil {
		_ = say(c, sayRefused, []byte(err.Error())) // he may have gone
		c.Close()
		return nil, err
	}
	conn := newRecvConn(newHalf(t, dev, from, c))
	if err = conn.listen(ctx); err == nil {
		err = conn.register(ctx)
	}
	if err == nil {
		err = conn.progress() // posts receives
	}
	if err != nil {
		_ = say(c, sayRefused, []byte(err.Error()))
		conn.end(fnCloseRecv)
		return nil, err
	}
	return conn, nil
}

// listen makes a listener for this one connection and accepts it.
func (c *recvConn) listen(ctx context.Context) error {
	l := newCaller(&c.t.lib.table, c.t.ctx, c.dev.Index)
	closing := func(struct{}) { c.t.log.Debug("plugin: listener closed", "result", l.close(fnCloseListen)) }
	_, err := abandon(ctx, func() (struct{}, error) {
		return struct{}{}, c.result(fnListen, l.listen())
	}, closing)
	if err != nil {
		return err
	}
	defer closing(struct{}{})
	offer := binary.BigEndian.AppendUint32(nil, uint32(c.dev.Index))
	if err := say(c.ctl.c, sayHandle, append(offer, l.handle[:]...)); err != nil {
		return err
	}
	if !c.t.background(func() {
		c.ctl.read(func() { c.t.background(c.drain) })
	}) {
		return fifo.ErrClosed
	}
	return c.setUp(ctx, fnAccept, func() Result { return c.call.accept(l.comm) })
}
