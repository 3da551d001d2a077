package gpucomm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/internal/plain"
)

// A windowNote is what a rank says to the others in Register, Flat and Window.Close; empty in Suspend and Resume.
type windowNote struct {
	Window int
	Bytes  int             `json:",omitempty"`
	Held   int             `json:",omitempty"` // graphs that hold operations in the window
	Bad    string          `json:",omitempty"` // what is wrong on the rank, "" if nothing is
	Span   json.RawMessage `json:",omitempty"`
}

// meetings are those of the methods that all ranks call together.
type meetings struct {
	life    *life.Life
	timeout time.Duration
	take    func(ctx context.Context, f func() error) error // Options.InTurn
}

func meetingsOf(o *Options) meetings {
	return meetings{life: o.Life, timeout: o.JoinTimeout, take: o.InTurn}
}

// meet gives all ranks the notes of all, by rank. If it fails the communicator has ended, for
// the ranks may not have the same windows any more.
func (m *meetings) meet(ctx context.Context, method call.Method, mine windowNote) ([]windowNote, error) {
	all, err := m.life.Meet(ctx, m.timeout, method, plain.JSON(&mine))
	if err != nil {
		if stopped := m.life.Guard.Aborted(); errors.Is(err, stopped) {
			return nil, err
		}
		return nil, m.abandon(method, err)
	}
	notes := make([]windowNote, len(all))
	for r, said := range all {
		if err := json.Unmarshal(said, &notes[r]); err != nil {
			return nil, m.abandon(method, fmt.Errorf("what rank %d says: %w", r, err))
		}
		if notes[r].Window != mine.Window {
			return nil, m.abandon(method,
				fmt.Errorf("%w: rank %d calls %v of window #%d, rank %d of window #%d; all ranks must make the same calls in the "+
					"same order",
					call.ErrMismatch, m.life.Rank, method, mine.Window, r, notes[r].Window))
		}
	}
	return notes, nil
}

// together carries out a method that all ranks call together. It takes the Turn.
func (m *meetings) together(method call.Method, do func(context.Context) error) error {
	err := m.inTurn(func(ctx context.Context) error {
		if err := m.life.Refuse(); err != nil {
			return fmt.Errorf("the communicator has failed before: %w", err)
		}
		return do(ctx)
	})
	if err != nil {
		return m.life.ErrorOf(method.String(), err)
	}
	return nil
}

// inTurn calls f in the Turn, within the time for a meeting.
func (m *meetings) inTurn(f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), m.timeout)
	defer cancel()
	return m.take(ctx, func() error { return f(ctx) })
}

// abandon ends the communicator if there is an error in a method, and returns the error.
func (m *meetings) abandon(method call.Method, cause error) error {
	if cause != nil {
		m.life.FailIn(method.String(), cause)
	}
	return cause
}
