package gpucomm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/core/call"
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

// meet gives all ranks the notes of all, by rank. If it fails the communicator has ended, for
// the ranks may not have the same windows any more.
func (b *base) meet(ctx context.Context, method call.Method, mine windowNote) ([]windowNote, error) {
	all, err := b.Life.Meet(ctx, b.JoinTimeout, method, plain.JSON(&mine))
	if err != nil {
		if stopped := b.Life.Guard.Aborted(); errors.Is(err, stopped) {
			return nil, err
		}
		return nil, b.abandon(method, err)
	}
	notes := make([]windowNote, len(all))
	for r, said := range all {
		if err := json.Unmarshal(said, &notes[r]); err != nil {
			return nil, b.abandon(method, fmt.Errorf("what rank %d says: %w", r, err))
		}
		if notes[r].Window != mine.Window {
			return nil, b.abandon(method,
				fmt.Errorf("%w: rank %d calls %v of window #%d, rank %d of window #%d; all ranks must make the same calls in the "+
					"same order",
					call.ErrMismatch, b.Life.Rank, method, mine.Window, r, notes[r].Window))
		}
	}
	return notes, nil
}

// together carries out a method that all ranks call together. It takes the Turn.
func (b *base) together(method call.Method, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), b.JoinTimeout)
	defer cancel()
	err := b.InTurn(ctx, func() error {
		if err := b.Life.Refuse(); err != nil {
			return fmt.Errorf("the communicator has failed before: %w", err)
		}
		return do(ctx)
	})
	if err != nil {
		return b.Life.ErrorOf(method.String(), err)
	}
	return nil
}

// abandon ends the communicator if there is an error in a method, and returns the error.
func (b *base) abandon(method call.Method, cause error) error {
	if cause != nil {
		b.Life.FailIn(method.String(), cause)
	}
	return cause
}
