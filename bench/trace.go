package bench

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ringo-go/ringo"
	tracejoin "github.com/ringo-go/ringo/bench/join"
	"github.com/ringo-go/ringo/trace"
)

// How much of each measurement -trace keeps of a rank.
const (
	tracedCalls = 4       // the last ones, with their steps
	tracedEnds  = 64      // the last ones, to tell which rank came last
	tracedSteps = 1 << 12 // the most steps and waits of one call
)

// traces is the observer of a measurement: each rank of this process has a Recorder.
type traces struct {
	mu    sync.RWMutex
	ranks map[int]*trace.Recorder // guarded by mu
}

func newTraces() *traces { return &traces{ranks: map[int]*trace.Recorder{}} }

// of is the Recorder of a rank.
func (t *traces) of(rank int) *trace.Recorder {
	t.mu.RLock()
	r := t.ranks[rank]
	t.mu.RUnlock()
	if r != nil {
		return r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ranks[rank] == nil {
		t.ranks[rank] = trace.NewRecorder(tracedEnds, tracedSteps)
	}
	return t.ranks[rank]
}

func (t *traces) Begin(c *trace.Call) { t.of(c.Rank).Begin(c) }
func (t *traces) End(c *trace.Call)   { t.of(c.Rank).End(c) }

// A tracer keeps the calls of one rank in the measurements, for -trace. The methods of a nil tracer, without
// -trace, do nothing.
type tracer struct {
	comm  *ringo.Comm
	rec   *trace.Recorder
	clock tracejoin.Clock
	kept  trace.Trace
}

// newTracer is called by all ranks together.
func newTracer(cfg *Config, c *ringo.Comm) (*tracer, error) {
	if cfg.traces == nil {
		return nil, nil
	}
	t := &tracer{comm: c, rec: cfg.traces.of(c.Rank())}
	return t, t.clock.Measure(c)
}

// forget begins a measurement.
func (t *tracer) forget() {
	if t != nil {
		t.rec.Forget()
	}
}

// keep ends a measurement: of each track it keeps the last calls.
func (t *tracer) keep() {
	if t == nil {
		return
	}
	calls := t.rec.Trace().Calls
	type track struct {
		gpu    bool
		number int
	}
	seen := map[track]int{}
	for i := len(calls) - 1; i >= 0; i-- {
		c := &calls[i]
		l := track{c.GPU, c.Track}
		if seen[l]++; seen[l] > tracedCalls {
			c.Lost, c.Steps = c.Lost+len(c.Steps), nil
		}
		if seen[l] > tracedEnds {
			calls = slices.Delete(calls, i, i+1)
		}
	}
	t.kept.Calls = append(t.kept.Calls, calls...)
}

// gather is the kept calls of all ranks on rank 0, and nil on the others. All ranks call it together.
func (t *tracer) gather() (*trace.Trace, error) {
	if t == nil {
		return nil, nil
	}
	if err := t.clock.Measure(t.comm); err != nil {
		return nil, err
	}
	return tracejoin.Gather(t.comm, &t.clock, &t.kept)
}

// describe is a line about the trace in a file.
func describe(t *trace.Trace, file string) string {
	calls, lost := 0, 0
	for i := range t.Calls {
		if len(t.Calls[i].Steps) > 0 || t.Calls[i].GPU {
			calls++
			lost += t.Calls[i].Lost
		}
	}
	words := fmt.Sprintf("trace: %s has the steps of %d calls", file, calls)
	if lost > 0 {
		words += fmt.Sprintf(", but for the last %d of long ones", lost)
	}
	return words + "; ui.perfetto.dev shows it"
}
