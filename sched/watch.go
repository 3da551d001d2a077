package sched

import (
	"fmt"
	"math/bits"
)

// Watch is Check that shows what happens: see is called for every step, in an order in which
// they may happen, with the value that the step has made. Which order that is says nothing
// about time; every other order makes the same values. If a step cannot be, its rank
// stops there and the others go on as far as they can, so that what led there is seen.
// see may be nil.
func Watch(s Schedule, g Goal, depth int, inPlace bool, see func(Event)) error {
	if err := check(s, g, depth, inPlace, see); err != nil {
		return fmt.Errorf("check %v: %w", g, err)
	}
	return nil
}

// An Event is a step that has happened.
type Event struct {
	Rank  Rank
	Index int // of the step among those of the rank
	Step
	Value Value // v of the step: what it keeps and sends
}

// A Value is what a chunk or a message holds, as names of contributions: the sum of one
// chunk of the In of some ranks, or a copy of one rank's. It is valid while Watch runs and
// after it. Equal values may be compared: they are the same expression, but for the sides of
// its ⊕.
type Value struct {
	terms *terms
	id    term
}

// Chunk is which chunk of In the value is about.
func (v Value) Chunk() int { return v.terms.chunk(v.id) }

// From lists the ranks whose contributions the value holds, in order.
func (v Value) From() []Rank {
	set := make([]uint64, v.terms.words)
	v.terms.union(set, v.id)
	var ranks []Rank
	for w, word := range set {
		for ; word != 0; word &= word - 1 {
			ranks = append(ranks, Rank(w*64+bits.TrailingZeros64(word)))
		}
	}
	return ranks
}

// String is the value as errors of Check write it, (2+(0+1))[5]; long ones end in an ellipsis.
func (v Value) String() string { return v.terms.String(v.id) }

// watched is step with see.
func (p *proof) watched(see func(Event)) func(Rank, int, Step, message) (message, error) {
	return func(r Rank, i int, t Step, got message) (message, error) {
		m, err := p.step(r, i, t, got)
		switch {
		case err != nil && see == nil:
			return m, err
		case err != nil:
			if p.wrong == nil {
				p.wrong = at(r, i, t, err)
			}
			return m, halt{err}
		case see != nil:
			see(Event{r, i, t, Value{p.terms, m.value}})
		}
		return m, nil
	}
}

// Gives reports whether rank r has an In in this collective.
func (g Goal) Gives(r Rank) bool { return g.in.has(r) }

// Gets reports whether rank r has an Out in this collective.
func (g Goal) Gets(r Rank) bool { return g.out.has(r) }

// Sums reports whether Out holds sums, rather than copies.
func (g Goal) Sums() bool { return g.sum }

// A Refutation is an error of Check that knows where the schedule goes wrong.
type Refutation struct {
	Faults []Fault // one, or for a deadlock that of each rank which waits
	err    error
}

// A Fault is a step, or a chunk of the result, at which a schedule goes wrong.
type Fault struct {
	Rank Rank
	Step int    // -1 if the fault is in no step
	Out  int    // the chunk of Out that is wrong at the end, -1 if the fault is in no chunk
	Why  string // in words, without rank, step and chunk
}

// Error is the whole sentence.
func (e *Refutation) Error() string { return e.err.Error() }

// Unwrap is the error without its faults.
func (e *Refutation) Unwrap() error { return e.err }
