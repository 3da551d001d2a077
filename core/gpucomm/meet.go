package gpucomm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/call"
)

// A windowNote is what a rank says to the others in Register and Window.Close.
type windowNote struct {
	Window int
	Bytes  int             `json:",omitempty"`
	Held   int             `json:",omitempty"` // graphs that hold operations in the window
	Bad    string          `json:",omitempty"` // what is wrong on the rank, "" if nothing is
	Span   json.RawMessage `json:",omitempty"`
}

// meet gives all ranks the notes of all, by rank. If it fails the communicator has ended, for
// the ranks may not have the same windows any more.
func (g *Comm) meet(ctx context.Context, method call.Method, mine windowNote) ([]windowNote, error) {
	b, err := json.Marshal(&mine)
	if err != nil {
		panic(err) // plain data always marshals
	}
	all, err := g.Life.Meet(ctx, g.JoinTimeout, method, b)
	if err != nil {
		if stopped := g.Life.Guard.Aborted(); errors.Is(err, stopped) {
			return nil, err
		}
		return nil, g.abandon(method, err)
	}
	notes := make([]windowNote, len(all))
	for r, b := range all {
		if err := json.Unmarshal(b, &notes[r]); err != nil {
			return nil, g.abandon(method, fmt.Errorf("what rank %d says: %w", r, err))
		}
		if notes[r].Window != mine.Window {
			return nil, g.abandon(method, fmt.Errorf("%w: rank %d calls %v of window #%d, rank %d of window #%d; all ranks must make the same calls in the same order",
				call.ErrMismatch, g.Life.Rank, method, mine.Window, r, notes[r].Window))
		}
	}
	return notes, nil
}

// abandon ends the communicator because of an error in a method, and returns the error.
func (g *Comm) abandon(method call.Method, cause error) error {
	g.Life.FailIn(method.String(), cause)
	return cause
}
