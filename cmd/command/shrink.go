package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ringo-go/ringo/internal/cli"
	"github.com/ringo-go/ringo/internal/emu/decision"
)

// A shrunk is a failure of a program, and the fewest decisions found with which it comes again.
type shrunk struct {
	Failure   string   `json:"failure"` // "race: add.cu:9 in add", "exit status 1"
	Seed      uint64   `json:"seed"`
	Decisions int      `json:"decisions"` // of the run that the seed made, in which it differs from the plain order
	Needed    int      `json:"needed"`
	Repeats   int      `json:"repeats"`         // of shrinkRepeats runs with the decisions that are needed: how many failed so
	Threads   int      `json:"threads"`         // of the host that have called the driver
	Timed     bool     `json:"timed,omitempty"` // it came only while kernels ran in their own time
	Story     []string `json:"story"`
	Spent     bool     `json:"spent,omitempty"` // all runs were used up: fewer may do
	Why       string   `json:"why,omitempty"`   // it could not be made short
}

const (
	shrinkRuns    = 400 // of the program, for a failure
	shrinkSeeds   = 20  // that are tried until one fails in the same way while it is recorded
	shrinkRepeats = 3
)

// A shrinker makes the schedule of a failure short.
type shrinker struct {
	*emulation
	ctx     context.Context
	dir     string
	failure failure
	seed    uint64
	limit   time.Duration // of a run
	lazy    bool          // kernels run only while the program waits for them
	runs    int
}

// A failure is a finding, or how a program ended.
type failure struct {
	found *emulateFound
	ended string
}

func (f failure) String() string {
	if f.found == nil {
		return f.ended
	}
	text := f.found.Kind
	if f.found.At != "" {
		text += ": " + f.found.At
	}
	if f.found.Other != "" {
		text += " and " + f.found.Other
	}
	return text
}

// in reports whether a run failed in this way.
func (f failure) in(r *emulateReport) bool {
	if f.found == nil {
		return r.Ended == f.ended
	}
	return slices.ContainsFunc(r.Findings, f.found.same)
}

// failures are those of a report that a schedule may decide, and the seed that first had each.
func (r *emulateReport) failures() (list []failure, seeds []uint64) {
	for _, f := range r.Findings {
		if f.Kind != kindLeak {
			list, seeds = append(list, failure{found: f}), append(seeds, f.Seeds[0])
		}
	}
	if r.Ended != "" {
		list, seeds = append(list, failure{ended: r.Ended}), append(seeds, r.endedSeed)
	}
	return list, seeds
}

// shrink makes the schedules of all failures short. took is how long a seed ran at most.
func (e *emulation) shrink(ctx context.Context, r *emulateReport, took time.Duration, stderr io.Writer) error {
	dir, err := temporary("ringo-shrink")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bar := cli.NewProgress(stderr)
	defer bar.Clear()
	failures, seeds := r.failures()
	for i, f := range failures {
		bar.Show("making schedules short", float64(i)/float64(len(failures)))
		s := &shrinker{emulation: e, ctx: ctx, dir: dir, failure: f, seed: seeds[i], limit: 10*time.Second + 20*took}
		short, err := s.shrink()
		r.Shrunk = append(r.Shrunk, short)
		if err != nil {
			return err
		}
	}
	return nil
}

// shrink finds a run that fails in the same way while its decisions are written down, and leaves out what it can.
func (s *shrinker) shrink() (*shrunk, error) {
	x := &shrunk{Failure: s.failure.String(), Seed: s.seed, Story: []string{}}
	list, err := s.record(x)
	if err != nil || x.Why != "" {
		return x, err
	}
	x.Decisions = len(list)
	if fails, _ := s.fails(list); !fails {
		if s.ctx.Err() != nil {
			return x, context.Cause(s.ctx)
		}
		x.Why = "the same decisions did not make it again"
		return x, nil
	}
	if fails, _ := s.fails(nil); fails {
		list = nil
	}
	list = s.drop(list)
	x.Spent = s.runs > shrinkRuns
	for s.runs = 0; s.runs < shrinkRepeats && s.ctx.Err() == nil; {
		fails, r := s.fails(list)
		if fails {
			x.Repeats++
			x.Story = r.story()
		}
	}
	x.Needed = len(list)
	return x, context.Cause(s.ctx)
}

// record is the decisions of a run that fails so, under the seed or another one. First kernels run only while the
// program waits for them, which a program repeats if it has one thread, then in their own time.
func (s *shrinker) record(x *shrunk) ([]decision.Decision, error) {
	file := filepath.Join(s.dir, "recorded")
	for _, s.lazy = range []bool{true, false} {
		for i := range uint64(shrinkSeeds) {
			s.seed = x.Seed + i
			os.Remove(file)
			r, err := s.attempt(map[string]string{"RINGO_EMULATE_RECORD": file})
			switch {
			case err != nil:
				return nil, err
			case len(r.processes) > 1:
				x.Why = fmt.Sprintf("%d processes of the program use GPUs, each with a schedule of its own: run all ranks in one",
					len(r.processes))
				return nil, nil
			case s.failure.in(r):
				x.Seed, x.Threads, x.Timed = s.seed, r.threads, !s.lazy
				return s.recorded(file, x)
			}
			if r.late { // it waits for a kernel without a call of the driver
				break
			}
		}
	}
	x.Why = fmt.Sprintf("it did not come again under %d seeds whose decisions were written down", shrinkSeeds)
	return nil, nil
}

func (s *shrinker) recorded(file string, x *shrunk) ([]decision.Decision, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		x.Why = "no process of the program has called the GPU's driver"
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decision.Read(f)
}

// fails reports whether a run with these decisions fails in the same way.
func (s *shrinker) fails(list []decision.Decision) (bool, *emulateReport) {
	if s.runs++; s.runs > shrinkRuns || s.ctx.Err() != nil {
		return false, nil
	}
	file := filepath.Join(s.dir, "followed")
	f, err := os.Create(file)
	if err != nil {
		return false, nil
	}
	if err = decision.Write(f, list); f.Close() != nil || err != nil {
		return false, nil
	}
	r, err := s.attempt(map[string]string{"RINGO_EMULATE_FOLLOW": file})
	return err == nil && s.failure.in(r), r
}

// drop leaves out decisions that the failure does not need, in ever smaller groups, as long as that helps.
//
// Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 2002.
func (s *shrinker) drop(list []decision.Decision) []decision.Decision {
	for before := len(list) + 1; len(list) < before; {
		before = len(list)
		for size := (len(list) + 1) / 2; size > 0; size /= 2 {
			for from := 0; from < len(list); {
				to := min(from+size, len(list))
				less := slices.Delete(slices.Clone(list), from, to)
				if fails, _ := s.fails(less); fails {
					list = less
				} else {
					from = to
				}
			}
		}
	}
	return list
}

// attempt runs the program with more in its environment, in silence. A run that takes too long is one that does not
// fail.
func (s *shrinker) attempt(env map[string]string) (*emulateReport, error) {
	e := *s.emulation
	if s.lazy {
		env["RINGO_EMULATE_LAZY"] = "1"
	}
	e.environment = with(s.environment, env)
	r := newEmulateReport(&e)
	file := filepath.Join(s.dir, "report")
	os.Remove(file)
	ctx, cancel := context.WithTimeout(s.ctx, s.limit)
	defer cancel()
	right, err := e.once(ctx, s.seed, file, io.Discard, io.Discard, r)
	switch {
	case s.ctx.Err() != nil:
		return r, context.Cause(s.ctx)
	case ctx.Err() != nil:
		r.late = true
		return r, nil
	case err != nil:
		return r, err
	}
	return r, r.read(file, s.seed, right)
}

// An emulateStep is a decision that was followed: see cmd/libcuda/report.go.
type emulateStep struct {
	decision.Decision
	decision.Scene
}

// story is what was decided, a sentence for each step.
func (r *emulateReport) story() []string {
	story := []string{}
	for _, s := range r.steps {
		story = append(story, s.String())
	}
	return story
}

func (s *emulateStep) String() string {
	at := func(source string, line int, kernel string) string {
		switch {
		case source != "":
			return source
		case line > 0:
			return fmt.Sprintf("line %d of the PTX of %s", line, kernelName(kernel))
		}
		return "its end"
	}
	who := fmt.Sprintf("GPU %d, %s, block %s, warp %d", s.Warp.Device, kernelName(s.Kernel), triple(s.Warp.Block),
		s.Warp.Warp)
	switch s.Kind {
	case decision.Switch:
		to := fmt.Sprintf("GPU %d, %s, block %s, warp %d runs from %s", s.To.Device, kernelName(s.ToKernel),
			triple(s.To.Block), s.To.Warp, at(s.ToSource, s.ToLine, s.ToKernel))
		if s.Kernel == "" {
			return to
		}
		return who + " stands at " + at(s.Source, s.Line, s.Kernel) + ": " + to
	case decision.Part, decision.Stray:
		return fmt.Sprintf("%s: thread %d runs before the others of its warp, which have parted from it", who, s.Thread)
	case decision.Hold:
		what := fmt.Sprintf("the store of %d bytes to %s", s.Size, s.Where)
		if s.Value > 0 {
			what = fmt.Sprintf("the store of %#x to %s", s.Value, s.Where)
		}
		if s.Seen {
			return fmt.Sprintf("%s, %s: all see it now", at(s.Source, s.Line, s.Kernel), what)
		}
		return fmt.Sprintf("%s, thread %d at %s: others do not see %s yet", who, s.Thread, at(s.Source, s.Line, s.Kernel),
			what)
	case decision.Load:
		return fmt.Sprintf("%s, thread %d at %s: the load is carried out late, after what follows it", who, s.Thread,
			at(s.Source, s.Line, s.Kernel))
	case decision.Old:
		return fmt.Sprintf("%s, thread %d at %s: the load gives a value that was overwritten", who, s.Thread,
			at(s.Source, s.Line, s.Kernel))
	case decision.Copy:
		return fmt.Sprintf("%s, thread %d at %s: the asynchronous copy of %d bytes takes long", who, s.Thread,
			at(s.Source, s.Line, s.Kernel), s.Size)
	}
	return "on its stream " + kernelName(s.Kernel) + " begins late"
}

func triple(v [3]int) string { return fmt.Sprintf("(%d,%d,%d)", v[0], v[1], v[2]) }

// print prints what was found in words.
func (x *shrunk) print(w io.Writer) {
	fmt.Fprintf(w, "\nschedule of %s\n", x.Failure)
	if x.Why != "" {
		fmt.Fprintf(w, "    not made short: %s\n", x.Why)
		return
	}
	if x.Needed == 0 {
		fmt.Fprintf(w, "    needs none of %s of seed %d: it comes in the plain order too\n", many(x.Decisions, "decision"),
			x.Seed)
	} else {
		fmt.Fprintf(w, "    needs %d of %s of seed %d; all else is in the plain order\n", x.Needed,
			many(x.Decisions, "decision"), x.Seed)
	}
	for i, step := range x.Story {
		fmt.Fprintf(w, "    %d. %s\n", i+1, step)
	}
	if x.Spent {
		fmt.Fprintf(w, "    fewer may do: %d runs were used up\n", shrinkRuns)
	}
	fmt.Fprintf(w, "    came %d times in %d runs", x.Repeats, shrinkRepeats)
	if x.Threads > 1 {
		fmt.Fprintf(w, "; %d threads of the host call the driver in an order that is not part of the schedule", x.Threads)
	}
	if x.Timed {
		fmt.Fprint(w, "; the program waits for kernels without a call of the driver, so time is a part of the schedule")
	}
	fmt.Fprintln(w)
}
