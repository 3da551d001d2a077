package ringo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Methods in which ranks tell each other of windows.
const (
	opRegister = "Register"
	opClose    = "Window.Close"
)

// A windowNote is what a rank tells the others when they come together.
type windowNote struct {
	Op     string
	Window int
	Bytes  int             `json:",omitempty"`
	Bad    string          `json:",omitempty"` // what the rank cannot do, and why
	Span   json.RawMessage `json:",omitempty"`
}

func (n *windowNote) String() string {
	if n.Bytes == 0 {
		return fmt.Sprintf("%s of window #%d", n.Op, n.Window)
	}
	return fmt.Sprintf("%s of window #%d of %d bytes", n.Op, n.Window, n.Bytes)
}

// meet exchanges notes of all ranks. An error has ended the communicator, for the
// ranks are not at the same point any more.
func (c *Comm) meet(ctx context.Context, mine windowNote) ([]windowNote, error) {
	b, err := json.Marshal(&mine)
	if err != nil {
		panic(err) // plain data always marshals
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // nothing else looks at the guard
		tick := time.NewTicker(watchPeriod)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := c.guard.Aborted(); err != nil {
					cancel(err)
				}
			}
		}
	}()
	blobs, err := c.group.AllGather(ctx, b)
	switch f := c.group.Failure(); {
	case err == nil:
	case c.guard.Aborted() != nil:
		return nil, c.guard.Aborted()
	case f != nil:
		return nil, c.abandon(mine.Op, &peerError{f})
	case errors.Is(err, context.DeadlineExceeded):
		return nil, c.abandon(mine.Op, fmt.Errorf("not all ranks came within %v (Config.JoinTimeout): %w", c.cfg.JoinTimeout, ErrTimeout))
	default:
		return nil, c.abandon(mine.Op, fmt.Errorf("%w: %w", ErrPeer, err))
	}
	notes := make([]windowNote, c.size)
	for r, b := range blobs {
		o := &notes[r]
		if err := json.Unmarshal(b, o); err != nil || o.Op == "" {
			return nil, c.abandon(mine.Op, fmt.Errorf("%w: rank %d calls %v, rank %d another collective method; all ranks must make the same calls in the same order",
				ErrMismatch, c.rank, &mine, r))
		}
		if o.Op != mine.Op || o.Window != mine.Window {
			return nil, c.abandon(mine.Op, fmt.Errorf("%w: rank %d calls %v, rank %d calls %v; all ranks must make the same calls in the same order",
				ErrMismatch, c.rank, &mine, r, o))
		}
	}
	return notes, nil
}

// abandon ends the communicator because of what happened in a method.
func (c *Comm) abandon(op string, cause error) error {
	c.end(c.errorIn(op, cause), cause)
	return cause
}

// errorIn gives an error of a method its place.
func (c *Comm) errorIn(op string, cause error) *Error {
	return &Error{Op: op, Rank: c.rank, Host: c.cfg.hostname(), Peer: -1, Err: cause}
}
