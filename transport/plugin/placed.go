package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

var _ transport.Placer = (*Transport)(nil)

// DialPlaced is part of transport.Placer. It does not wait for AcceptPlaced: where the peer calls
// Accept instead, the connection breaks later. A slot is free again when the plugin has sent it. The
// plugin sends a slot when the receiver has released the slot before it in the same memory; so as
// many slots may wait at this end as at the other.
func (t *Transport) DialPlaced(peer transport.Info, addr []byte, slots mem.Region) (transport.PlacedSendConn, error) {
	ctx, cancel := listen.Patience(t.cfg.Guard, t.ends.Away(), t.log)
	defer cancel()
	_, err := t.find(slots)
	var c *sendConn
	if err == nil {
		c, err = t.dial(ctx, peer, addr, &slots)
	}
	if err != nil {
		return nil, fmt.Errorf("plugin: dial rank %d, placed: %w", peer.Rank, err)
	}
	return c, nil
}

// AcceptPlaced is part of transport.Placer.
func (t *Transport) AcceptPlaced(peer transport.Info, slots mem.Region) (transport.PlacedRecvConn, error) {
	_, err := t.find(slots)
	var c *recvConn
	if err == nil {
		c, err = t.take(peer, true)
	}
	if err == nil {
		ctx, cancel := listen.Patience(t.cfg.Guard, t.ends.Away(), t.log)
		defer cancel()
		err = c.settleIn(ctx, slots)
	}
	if err != nil {
		return nil, fmt.Errorf("plugin: accept rank %d, placed: %w", peer.Rank, err)
	}
	return c, nil
}

// settleIn has the plugin receive into slots.
func (c *recvConn) settleIn(ctx context.Context, slots mem.Region) error {
	err := c.settle(ctx, slots)
	if err == nil {
		err = c.look() // step posts receives
	}
	if err == nil {
		err = c.failure()
	}
	if err == nil && c.evicted() {
		err = fifo.ErrClosed
	}
	if err != nil {
		return c.refuse(err)
	}
	return nil
}

// refuse closes a connection and tells the peer why. It returns the reason.
func (c *recvConn) refuse(reason error) error {
	if c.alive() == nil && !c.told.Swap(true) {
		_ = say(c.ctl.c, sayRefused, []byte(reason.Error())) // a peer that has gone needs none
	}
	_ = c.Close()
	return reason
}

// odd is the error of a connection with one placed end: this rank's end, or the peer's.
func odd(placed bool) error {
	if placed {
		return errors.New("the sending end of the connection is not placed and the receiving one is; do all ranks have the " +
			"same settings?")
	}
	return errors.New("the sending end of the connection is placed and the receiving one is not; do all ranks have the " +
		"same settings?")
}
