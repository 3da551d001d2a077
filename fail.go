package ringo

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/engine"
)

// watchGroup makes the failure of another rank end the waits of this one.
func (c *Comm) watchGroup() {
	select {
	case <-c.gone:
	case <-c.group.Failed():
		c.guard.Abort(&peerError{c.group.Failure()})
	}
}

// fail ends the communicator: this rank's waits, and by way of the group those
// of all others. Arguments that are wrong on this rank alone were found before.
func (c *Comm) fail(call *Call, cause error) *Error {
	e := c.errorOf(call, c.seq, cause)
	if !errors.Is(cause, ErrInvalid) && !errors.Is(cause, ErrUnsupported) {
		c.end(e, cause)
	}
	return e
}

// end ends the communicator because of e, the cause with its place.
func (c *Comm) end(e *Error, cause error) {
	var m *mismatch
	switch broken := !errors.Is(cause, ErrPeer) && !errors.Is(e, ErrMismatch) && !errors.Is(cause, ErrTimeout) && !errors.Is(cause, ErrAborted); {
	case broken, errors.As(e, &m) && m.ahead():
		// A connection broke, or a peer is at another call because one before was cut
		// short on its GPU. Whose fault it was the group knows, in a moment.
		select {
		case <-c.group.Failed():
			if f := c.group.Failure(); broken || f.Died {
				e.Err = fmt.Errorf("%w (%v)", &peerError{f}, e.Err)
			}
		case <-time.After(rootCauseWait):
		}
	}
	if c.failed.CompareAndSwap(nil, e) {
		c.guard.Abort(e)
		c.group.Fail(e.Error())
	}
}

// rootCauseWait is how long a rank whose connection broke waits to hear from the
// group which rank has died, so as to name it and not just a neighbour.
const rootCauseWait = 300 * time.Millisecond

// errorOf gives an error its place.
func (c *Comm) errorOf(call *Call, seq uint32, cause error) *Error {
	e := &Error{Op: call.Kind.String(), Seq: seq, Rank: c.rank, Host: c.cfg.hostname(), Peer: -1, Err: cause}
	if call.Kind == KindSend || call.Kind == KindRecv {
		e.Seq = 0
	}
	var st *engine.StepError
	if errors.As(cause, &st) {
		e.Peer, e.Phase, e.Err = int(st.Peer), st.Phase, st.Err
		e.Transport = c.via(call, e.Peer)
		var m *engine.MismatchError
		if errors.As(st.Err, &m) {
			e.Err = &mismatch{rank: c.rank, peer: e.Peer, cause: m, at: c.placement(signOf(m.Want).where)}
		}
		var peer *peerError // how a transport words its wait adds nothing to who failed
		if errors.As(st.Err, &peer) {
			e.Err = peer
		}
		var earlier *Error // an abort's reason needs no second place
		if errors.As(st.Err, &earlier) {
			e.Peer, e.Phase, e.Transport = -1, "", ""
		}
	}
	return e
}

// via names the path of a call to a peer.
func (c *Comm) via(call *Call, peer int) string {
	if call.onDevice() && c.dev != nil && c.dev.net != nil {
		return c.dev.net.via(peer)
	}
	return c.links.via(peer)
}

func openError(cfg Config, err error) error {
	return &Error{Op: "Open", Rank: cfg.Rank, Host: cfg.hostname(), Peer: -1, Err: err}
}

// Abort ends all operations of the communicator, here and on all other ranks,
// and always returns: at most half a second later, when the reason is on its way
// to the others. Close is still to be called.
func (c *Comm) Abort(reason error) {
	if reason == nil {
		reason = ErrAborted
	} else {
		reason = fmt.Errorf("%w: %w", ErrAborted, reason)
	}
	e := &Error{Op: "Abort", Rank: c.rank, Host: c.cfg.hostname(), Peer: -1, Err: reason}
	if c.failed.CompareAndSwap(nil, e) {
		c.guard.Abort(e)
		c.group.Fail(e.Error())
	}
}

// Err is why the communicator has failed, nil while it is well. It does not wait.
func (c *Comm) Err() error {
	if e := c.failed.Load(); e != nil {
		return e
	}
	if err := c.guard.Aborted(); err != nil {
		return err
	}
	return nil
}
