package commtest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ringo-go/ringo/trace"
)

// A Witness is a Recorder that checks each call as it ends.
type Witness struct {
	*trace.Recorder
	t      testing.TB
	Begins chan int // receives the rank, if it is not nil
	mu     sync.Mutex
	Failed []error
}

// NewWitness is a Witness that fails t.
func NewWitness(t testing.TB) *Witness { return &Witness{Recorder: trace.NewRecorder(0, 0), t: t} }

func (w *Witness) Begin(c *trace.Call) {
	w.Recorder.Begin(c)
	if w.Begins != nil {
		w.Begins <- c.Rank
	}
}

// End checks that Spans lie within each other and that the waits add up.
func (w *Witness) End(c *trace.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Err != nil {
		w.Failed = append(w.Failed, c.Err)
	}
	if err := c.Check(); err != nil {
		w.t.Error(err)
	}
	waits := make([]time.Duration, c.Size)
	for _, s := range c.Steps {
		if s.What != trace.Step {
			waits[s.Peer()] += time.Duration(s.End - s.Start)
		}
	}
	if !c.GPU && (c.Lost > 0 || !slices.Equal(waits, c.Waits)) {
		w.t.Errorf("%s: waits are %v together, and %v by rank", c.Title(), waits, c.Waits)
	}
	w.Recorder.End(c)
}
