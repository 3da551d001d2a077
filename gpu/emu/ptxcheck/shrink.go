package ptxcheck

import (
	"context"
	"slices"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
)

// A Schedule is the shortest order of warps found under which a finding is made.
type Schedule struct {
	Seed  uint64 `json:"seed"`  // decides when stores become visible, and all that follows the turns
	Turns []Turn `json:"turns"` // after which warps run in rotation; empty: from the beginning
	Steps int    `json:"steps"` // instructions of warps in all turns
}

// shorter reports whether a schedule, which may be nil, is shorter than another one.
func (s *Schedule) shorter(than *Schedule) bool {
	switch {
	case s == nil || than == nil:
		return s != nil
	case len(s.Turns) != len(than.Turns):
		return len(s.Turns) < len(than.Turns)
	}
	return s.Steps < than.Steps
}

// A Turn is a warp that runs some instructions in a row.
type Turn struct {
	GPU          int    `json:"gpu"`
	Launch       int    `json:"launch"` // of the GPU, from 0
	Kernel       string `json:"kernel"`
	Block        [3]int `json:"block"`
	Warp         int    `json:"warp"`
	Instructions int    `json:"instructions"`
	Line         int    `json:"line"`             // of the PTX, where it ends
	Source       string `json:"source,omitempty"` // "sum.cu:17"
}

// Bounds of shrinking a schedule: counts and not times, so that every machine finds the same schedule.
const (
	shrinkRuns         = 1000
	shrinkInstructions = 5_000_000
)

// A shrinker makes the schedule of a finding shorter.
type shrinker struct {
	ctx   context.Context
	plan  *plan
	key   key
	seed  uint64
	final bool    // the finding is made only at the end of the run, after all turns
	made  Finding // the finding after the shortest turns so far
	runs  int
	ran   uint64
}

// shrink is a finding as it is made after a short schedule; false if none was found in time.
func (p *plan) shrink(ctx context.Context, k key, seed uint64) (Finding, bool) {
	s := &shrinker{ctx: ctx, plan: p, key: k, seed: seed}
	switch k.kind {
	case Deadlock, Divergence, Endless, WrongResult:
		s.final = true
	}
	var turns []simt.Turn
	r := p.start(seed, func(c *simt.Config) { c.Took = func(t simt.Turn) { turns = append(turns, t) } })
	if !r.until(k, func() bool { return ctx.Err() == nil }) {
		return Finding{}, false
	}
	if s.final && s.holds([]simt.Turn{}) {
		s.made.Schedule = &Schedule{Seed: seed, Turns: []Turn{}}
		return s.made, true
	}
	if !s.holds(turns) {
		return Finding{}, false
	}
	for before := len(turns) + 1; len(turns) < before; {
		before = len(turns)
		turns = s.drop(turns)
		turns = s.join(turns)
	}
	turns = s.cut(turns)
	s.made.Schedule = s.schedule(turns)
	return s.made, true
}

// holds reports whether the finding is made after some turns.
func (s *shrinker) holds(turns []simt.Turn) bool {
	if s.runs++; s.runs > shrinkRuns || s.ran > shrinkInstructions || s.ctx.Err() != nil {
		return false
	}
	r := s.plan.start(s.seed, func(c *simt.Config) { c.Follow = turns })
	ok := r.until(s.key, func() bool { return s.ctx.Err() == nil && (s.final || !r.world.Followed()) })
	s.ran += r.world.Instructions()
	if ok {
		i := slices.IndexFunc(r.found, func(f found) bool { return f.key == s.key })
		s.made = r.found[i].Finding
	}
	return ok
}

// drop leaves out turns that the finding does not need, in ever smaller groups.
//
// Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 2002.
func (s *shrinker) drop(turns []simt.Turn) []simt.Turn {
	for size := (len(turns) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(turns); {
			to := min(from+size, len(turns))
			if less := slices.Delete(slices.Clone(turns), from, to); s.holds(less) {
				turns = less
			} else {
				from = to
			}
		}
	}
	return turns
}

// join moves two turns of a warp next to each other: the later turn forward, or the earlier one back.
func (s *shrinker) join(turns []simt.Turn) []simt.Turn {
	for i := 0; i < len(turns); i++ {
		for j := i + 1; j < len(turns); j++ {
			if !sameWarp(turns[i], turns[j]) {
				continue
			}
			without := func(k int) []simt.Turn { return slices.Delete(slices.Clone(turns), k, k+1) }
			if j == i+1 {
			} else if sooner := slices.Insert(without(j), i+1, turns[j]); s.holds(sooner) {
				turns = sooner
			} else if later := slices.Insert(without(i), j-1, turns[i]); s.holds(later) {
				turns = later
			}
			break
		}
	}
	return turns
}

func sameWarp(a, b simt.Turn) bool {
	a.Instructions = b.Instructions
	return a == b
}

// cut makes turns as short as they can be.
func (s *shrinker) cut(turns []simt.Turn) []simt.Turn {
	for i := range turns {
		for least := 1; least < turns[i].Instructions; {
			less := slices.Clone(turns)
			less[i].Instructions = (least + turns[i].Instructions) / 2
			if s.holds(less) {
				turns = less
			} else {
				least = less[i].Instructions + 1
			}
		}
	}
	return turns
}

// schedule runs the turns and describes each: its warp, its number of instructions, and the line where it ends.
func (s *shrinker) schedule(turns []simt.Turn) *Schedule {
	p := s.plan
	x := &Schedule{Seed: s.seed, Turns: []Turn{}}
	var took []simt.Turn
	var last *ptx.Instr
	count := 0 // of instructions in the turn that was taken last
	end := func() {
		if n := len(took); n > 0 && count > 0 {
			t := took[n-1]
			if m := len(x.Turns); m > 0 && n > 1 && sameWarp(took[n-2], t) {
				x.Turns[m-1].Instructions += count
			} else {
				x.Turns = append(x.Turns, Turn{GPU: t.Device, Launch: t.Launch, Kernel: p.launches[t.Device][t.Launch].Kernel.Name,
					Block: t.Block, Warp: t.Warp, Instructions: count})
			}
			at := &x.Turns[len(x.Turns)-1]
			at.Line, at.Source = last.Line, p.module.Source(last.Line)
			x.Steps += count
		}
		count = 0
	}
	r := p.start(s.seed, func(c *simt.Config) {
		c.Follow = turns
		c.Took = func(t simt.Turn) {
			end()
			took = append(took, t)
		}
		c.Trace = func(e simt.Event) {
			count++
			last = e.In
		}
	})
	r.until(s.key, func() bool { return !r.world.Followed() })
	end()
	return x
}
