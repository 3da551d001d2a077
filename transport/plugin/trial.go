package plugin

import (
	"context"
	"errors"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// A trial is the kind of memory with which a plugin is tried.
type trial struct {
	dev    int // the GPU whose memory is sent and received, -1 for the host's
	dmaBuf bool
}

// trialTime is how long a plugin may take to send this rank a message from itself. A plugin that
// takes longer is used all the same: it may not be made for that.
const trialTime = 2 * time.Second

var errTrialTime = errors.New("no message to itself in time")

// try has a plugin carry a message from this rank to itself, once in a process for each trial. So
// a plugin that fails does so before the ranks agree on a network, and not after. If slots is not
// nil, the message goes from there to the same place.
func (t *Transport) try(what trial, addr []byte, slots *mem.Region) error {
	patience, enough := listen.Patience(t.cfg.Guard, t.ends.Away(), nil)
	defer enough()
	select {
	case t.lib.trials <- struct{}{}:
	case <-patience.Done():
		return context.Cause(patience)
	}
	defer func() { <-t.lib.trials }()
	if verdict, tried := t.lib.tried[what]; tried {
		return verdict
	}
	ctx, cancel := context.WithTimeoutCause(patience, t.lib.trialTime, errTrialTime)
	defer cancel()
	err := t.carry(ctx, addr, slots)
	t.mu.Lock()
	delete(t.dialled, t.cfg.Self.Rank) // the next trial has the same device
	t.mu.Unlock()
	switch {
	case t.ends.Closed():
		return fifo.ErrClosed // that proves nothing about the plugin: the next communicator tries again
	case t.cfg.Guard.Aborted() != nil:
		return t.cfg.Guard.Aborted()
	case errors.Is(err, errTrialTime):
		t.log.Info("plugin: the trial is given up", "rank", t.cfg.Self.Rank, "err", err)
		err = nil
	}
	t.lib.tried[what] = err
	return err
}

func (t *Transport) carry(ctx context.Context, addr []byte, slots *mem.Region) error {
	send, err := t.dial(ctx, t.cfg.Self, addr, slots)
	if err != nil {
		return err
	}
	defer send.Close()
	recv, err := t.take(t.cfg.Self, slots != nil)
	if err != nil {
		return err
	}
	defer recv.Close()
	n := 1
	if slots != nil {
		if err := recv.settleIn(ctx, *slots); err != nil {
			return err
		}
		n = t.cfg.Limits.SlotBytes
	}
	if _, err := send.Reserve(n); err != nil {
		return err
	}
	if err := send.Publish(transport.Stamp{}); err != nil {
		return err
	}
	return send.ctl.poll(ctx, func() (bool, error) {
		err := send.failure()
		if err == nil {
			err = recv.failure()
		}
		send.ask()
		recv.ask()
		return recv.arrived.Load() > 0 && send.sent.Load() > 0, err
	})
}
