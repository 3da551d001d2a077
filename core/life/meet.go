package life

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/core/call"
)

// Meet gives all ranks what each of them says, by rank, in a method that all ranks call
// together (Split, Register). It waits at most for limit. It fails if ranks call different
// things (call.ErrMismatch), if not all have come (call.ErrTimeout), if one has given up or
// has left, and if the communicator ends. It fails on all ranks or on none, so they stay in
// step. The turn is held.
func (l *Life) Meet(ctx context.Context, limit time.Duration, method call.Method, mine []byte) ([][]byte, error) {
	l.Turn.Next(method.Sign().Stamp(), Collective, false)
	here := l.here()
	late := time.AfterFunc(Slow, func() { l.group.Inquire(here) })
	defer late.Stop()
	deadline, cancelDeadline := context.WithTimeout(ctx, limit)
	defer cancelDeadline()
	ctx, end := l.Within(deadline)
	defer end()
	all, err := l.group.AllGather(ctx, append([]byte{byte(method)}, mine...))
	if err != nil {
		return nil, l.absence(err, limit, deadline)
	}
	said := make([][]byte, len(all)) // ranks of one process share all
	for r, b := range all {
		if len(b) == 0 || b[0] != byte(method) {
			theirs := method
			if len(b) > 0 {
				theirs = call.Method(b[0])
			}
			return nil, fmt.Errorf("%w: rank %d calls %v, rank %d calls %v; all ranks must make the same calls in the same "+
				"order",
				call.ErrMismatch, l.Rank, method, r, theirs)
		}
		said[r] = b[1:]
	}
	return said, nil
}

// Within is a context that also ends with the life, whose end is then the context's cause. Call end when the context
// is needed no more.
func (l *Life) Within(ctx context.Context) (within context.Context, end func()) {
	within, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-within.Done():
		case <-l.stopped:
			cancel(l.Guard.Aborted())
		}
	}()
	return within, func() { cancel(nil) }
}

// absence says in the words of a communicator why ranks did not meet.
func (l *Life) absence(err error, limit time.Duration, deadline context.Context) error {
	var gaveUp *bootstrap.WithdrawnError
	var left *bootstrap.LeftError
	switch f := l.group.Failure(); {
	case l.Guard.Aborted() != nil:
		return l.Guard.Aborted()
	case f != nil:
		return &PeerError{f}
	case errors.Is(deadline.Err(), context.DeadlineExceeded):
		return fmt.Errorf("not all ranks came within %v (Config.JoinTimeout): %w: %w", limit, call.ErrTimeout, err)
	case errors.As(err, &left):
		return fmt.Errorf("%w: %w", call.ErrLeft, err)
	case errors.As(err, &gaveUp) && gaveUp.Rank != l.Rank:
		return fmt.Errorf("%w: %w", call.ErrPeer, err)
	}
	return err
}
