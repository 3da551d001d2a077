package plugin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// receive answers a caller and makes the receiving end of his connection, which then waits
// for Accept.
func (t *Transport) receive(c net.Conn, at *listen.Endpoint) {
	r, err := listen.Answer(c, at, &t.cfg, protocol, func(r *listen.Request) error {
		if len(r.Rest) != 1 || r.Rest[0] != 1 && r.Rest[0] != 2 {
			return fmt.Errorf("a request for comms as in %x", r.Rest)
		}
		return nil
	})
	if err != nil {
		c.Close()
		t.dropped(c, err)
		return
	}
	// This rank's Guard does not count here: it may have no operation yet, or one that is over.
	ctx, cancel := listen.Patience(new(fifo.Guard), t.ends.Away(), nil)
	defer cancel()
	conn, err := t.accept(ctx, c, r.From, int(r.Rest[0]))
	if err != nil {
		t.dropped(c, err)
		return
	}
	t.enlist(conn.half) // before Accept can return it: who waits for its data asks the actor once
	if !t.ends.Keep(conn) || !t.arrived.Put(r.From, conn) {
		conn.Close()
		return
	}
	// Now, so that connections are accepted in the order in which they were dialled.
	_ = say(c, sayReady, nil) // if the caller has gone, Next fails
}

func (t *Transport) dropped(c net.Conn, err error) {
	if !t.ends.Closed() {
		t.warn.Warn("plugin: dropped a caller", "rank", t.cfg.Self.Rank, "from", c.RemoteAddr(), "err", err)
	}
}

// accept has the plugin listen, tells the caller where, and waits for him. After an error c
// is closed and the caller knows the reason.
func (t *Transport) accept(ctx context.Context, c net.Conn, from, comms int) (*recvConn, error) {
	dev, err := t.device(from, comms)
	if err != nil {
		_ = say(c, sayRefused, []byte(err.Error())) // he may have gone
		c.Close()
		return nil, err
	}
	conn := newRecvConn(newHalf(t, dev, from, c, comms == 2))
	if err = conn.listen(ctx); err == nil {
		err = conn.knowRing(ctx)
	}
	if err == nil {
		err = conn.begin(ctx)
	}
	if err != nil {
		_ = say(c, sayRefused, []byte(err.Error()))
		conn.end(fnCloseRecv)
		return nil, err
	}
	return conn, nil
}

// listen makes a listener for each comm of one connection, and accepts the comms.
func (c *recvConn) listen(ctx context.Context) error {
	offer := binary.BigEndian.AppendUint32(nil, uint32(c.dev.Index))
	var listeners []*caller
	for range c.queues() {
		l := newCaller(&c.t.lib.table, c.t.ctx, c.dev.Index)
		err := c.setup.do(ctx, func() error {
			err := c.result(fnListen, l.listen())
			if err == nil && l.comm == 0 {
				err = c.blamed(fnListen, errors.New("it succeeded and gave no listener"))
			}
			return err
		})
		defer c.setup.post(func() {
			if l.comm != 0 {
				c.said(c.result(fnCloseListen, l.close(fnCloseListen)))
			}
		})
		if err != nil {
			return c.outcome(fnListen, err)
		}
		offer = append(offer, l.handle[:]...)
		listeners = append(listeners, l)
	}
	if err := say(c.ctl.c, sayHandle, offer); err != nil {
		return err
	}
	if !c.t.ends.Go(func() {
		c.ctl.read(func() { c.t.ends.Go(c.drain) })
	}) {
		return fifo.ErrClosed
	}
	for i, q := range c.queues() {
		if err := c.setUp(ctx, fnAccept, q, func() Result { return q.call.accept(listeners[i].comm) }); err != nil {
			return err
		}
	}
	return nil
}

// begin posts the first receives. Nobody else calls the plugin for the connection yet.
func (c *recvConn) begin(ctx context.Context) error {
	return c.setup.do(ctx, func() error {
		c.step()
		return c.failure()
	})
}
