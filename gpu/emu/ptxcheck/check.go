package ptxcheck

import (
	"context"
	"fmt"
)

// A Case is the kernels to check, the GPUs and memory that they get, and their launches. Only Text and
// Launches have no default.
type Case struct {
	Name string // of the text, for messages: "sum.ptx"
	Text []byte // PTX
	GPUs int    // 1 if zero
	// Link joins the GPUs: "nvlink", which carries lines of 128 bytes whole, "pcie", which tears
	// them, or "none": no GPU reaches another's memory. NVLink if empty.
	Link string
	SMs  int // multiprocessors of each GPU, of an H100's size; 8 if zero

	// Buffers are memory, one of each on every GPU: "NAME=TYPE[COUNT]", which begins as unwritten
	// memory, or "NAME=TYPE[COUNT]:CONTENTS".
	Buffers  []string
	Launches []Launch // one after the other on each GPU, as on a stream
	// Wants are the contents that buffers must have in the end: "NAME=CONTENTS" on every GPU, or
	// "NAME@GPU=CONTENTS".
	Wants []string

	Seeds        int    // how many; 100 if zero
	First        uint64 // the first seed
	Instructions uint64 // a run of more, over all threads, counts as endless; if zero 20 million, more for many threads

	Progress func(seeds int) // called after each, if set
}

// A Launch is a kernel on some GPUs.
type Launch struct {
	Kernel      string // may be empty if the text has only one
	Grid, Block [3]int // extents that are zero are 1
	Shared      int    // bytes of dynamic shared memory of a block
	Cooperative bool   // all blocks are resident at once
	Args        []string
	On          []int // GPUs; all if empty
}

// Run runs a case under its seeds. The error is an *Error, a mistake in the case, or the context's;
// with the context's, the Report tells the findings until then.
func Run(ctx context.Context, c Case) (*Report, error) {
	p, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	s := &search{plan: p, found: map[key]*hit{}}
	err = s.run(ctx)
	return s.report(ctx), err
}

// An Error is a mistake in a Case.
type Error struct {
	What string // "-buf x=f32[4]", "argument 2 of kernel sum"
	Err  error
}

func (e *Error) Error() string { return e.What + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func wrong(what string, err error) error { return &Error{what, err} }

func wrongf(what, format string, a ...any) error { return &Error{what, fmt.Errorf(format, a...)} }

// A hit is a finding under two seeds: of the seeds without old values, and of those with (see plan.start), the one that
// took the fewest steps. Either may lead to the shorter schedule.
type hit struct {
	key   key
	order int // 0 for the first hit
	seeds int // number of seeds that found it
	best  [2]*found
}

// A search runs seeds.
type search struct {
	plan  *plan
	found map[key]*hit
	ran   int
	halts int // seeds whose run came to a halt
}

// enoughHalts is the number of halted runs after which a search ends: such runs take long, and the
// remaining seeds would hardly end otherwise.
const enoughHalts = 3

func (s *search) run(ctx context.Context) error {
	for i := range s.plan.Seeds {
		seed := s.plan.First + uint64(i)
		r := s.plan.start(seed)
		if err := r.all(ctx); err != nil {
			return err
		}
		seen := map[key]bool{}
		for _, f := range r.found {
			if !seen[f.key] {
				s.note(seed, f)
			}
			seen[f.key] = true
		}
		s.ran++
		if s.plan.Progress != nil {
			s.plan.Progress(s.ran)
		}
		if r.halted {
			if s.halts++; s.halts == enoughHalts {
				return nil
			}
		}
	}
	return nil
}

func (s *search) note(seed uint64, f found) {
	h := s.found[f.key]
	if h == nil {
		h = &hit{key: f.key, order: len(s.found)}
		s.found[f.key] = h
	}
	h.seeds++
	if best := &h.best[seed%2]; *best == nil || f.steps < (*best).steps {
		f.Seed = seed
		*best = &f
	}
}

// finding is the hit as a Finding. With schedule set it has the shorter of the two seeds' shortest schedules.
func (s *search) finding(ctx context.Context, h *hit, schedule bool) (best Finding) {
	for _, f := range h.best {
		if f == nil {
			continue
		}
		x := f.Finding
		if schedule && ctx.Err() == nil {
			if short, ok := s.plan.shrink(ctx, h.key, f.Seed); ok {
				short.Seed, x = f.Seed, short
			}
		}
		if best.Kind == "" || x.Schedule.shorter(best.Schedule) {
			best = x
		}
	}
	best.Seeds = h.seeds
	return best
}
