package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
)

// trialTime is how long a plugin may take to send this rank a message from itself. One that
// takes longer is believed: it may not be made for that.
const trialTime = 2 * time.Second

var errTrialTime = fmt.Errorf("no message to itself in %v", trialTime)

// try has a plugin carry a message from this rank to itself, once in a process. So what fails
// does so before the ranks agree on a network, and not after.
func (t *Transport) try(addr []byte) error {
	t.lib.trials.Lock()
	defer t.lib.trials.Unlock()
	if t.lib.tried {
		return t.lib.broken
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), trialTime, errTrialTime)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-t.ends.Away():
			cancel()
		case <-stop:
		}
	}()
	err := t.trial(ctx, addr)
	switch {
	case t.ends.Closed():
		return fifo.ErrClosed // which says nothing of the plugin: the next communicator tries again
	case t.cfg.Guard.Aborted() != nil:
		return t.cfg.Guard.Aborted()
	case errors.Is(err, errTrialTime):
		t.log.Info("plugin: the trial is given up", "rank", t.cfg.Self.Rank, "err", err)
		err = nil
	}
	t.lib.tried, t.lib.broken = true, err
	return err
}

func (t *Transport) trial(ctx context.Context, addr []byte) error {
	send, err := t.dial(ctx, t.cfg.Self, addr, nil)
	if err != nil {
		return err
	}
	defer send.Close()
	r, err := t.Accept(t.cfg.Self)
	if err != nil {
		return err
	}
	defer r.Close()
	recv := r.(*recvConn)
	if _, err := send.Reserve(1); err != nil {
		return err
	}
	if err := send.Publish(transport.Stamp{}); err != nil {
		return err
	}
	return send.ctl.poll(ctx, func() (bool, error) {
		send.mu.Lock()
		send.progress()
		err := send.err
		send.mu.Unlock()
		if err == nil {
			err = recv.progress()
		}
		return recv.arrived.Load() > 0 && send.sent.Load() > 0, err
	})
}
