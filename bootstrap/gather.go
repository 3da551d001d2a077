package bootstrap

import (
	"fmt"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// A LeftError is an AllGather that cannot complete: a rank has said goodbye.
type LeftError struct{ Rank int }

func (e *LeftError) Error() string { return fmt.Sprintf("rank %d has left the group", e.Rank) }

// A WithdrawnError is an AllGather that one rank gave up before all had come. It has
// failed on every rank, and the next AllGather of each rank meets the next of all others.
type WithdrawnError struct {
	Rank    int    // that gave up; -1 if the group has failed
	Missing []int  // ranks that had not come until then, at most 1024
	Reason  string // of the rank that gave up
	Err     error  // on the rank that gave up: its context's error, or ErrClosed; nil on others
}

func (e *WithdrawnError) Error() string {
	who := fmt.Sprintf("rank %d gave up", e.Rank)
	if e.Rank < 0 {
		who = "given up"
	}
	if len(e.Missing) > 0 {
		who += fmt.Sprintf(" when rank %s had not come", rendezvous.Ranges(e.Missing))
	}
	return fmt.Sprintf("%s: %s", who, e.Reason)
}

func (e *WithdrawnError) Unwrap() error { return e.Err }

// gathers are the AllGathers for which a member waits.
type gathers struct {
	next      uint64                     // under the uplink's order
	waits     map[uint64]chan result     // by number
	held      map[uint64]chan result     // that have completed, whose result is on its way from the head
	withdrawn map[uint64]*WithdrawnError // to which this rank has yet to come
	stops     *rendezvous.Gone           // none from stops.Seq on can complete
	head      int                        // of this rank's machine, -1 if it has none
	giving    *head                      // nil unless this rank is a head
}

type result struct {
	data [][]byte
	err  error
}

func newGathers() gathers {
	return gathers{waits: map[uint64]chan result{}, held: map[uint64]chan result{},
		withdrawn: map[uint64]*WithdrawnError{}, head: -1}
}

// end ends the wait for AllGather seq, and reports whether anyone waits.
func (g *gathers) end(seq uint64, r result) bool {
	done, ok := g.waits[seq]
	if !ok {
		done, ok = g.held[seq]
	}
	if ok {
		delete(g.waits, seq)
		delete(g.held, seq)
		done <- r
	}
	return ok
}

// endAll ends all waits.
func (g *gathers) endAll(err error) {
	for seq := range g.waits {
		g.end(seq, result{err: err})
	}
}

// endHeld ends the waits for results that are on their way from the head.
func (g *gathers) endHeld(err error) {
	for seq := range g.held {
		g.end(seq, result{err: err})
	}
}

// hold notes that the head has a result for which this rank waits, and that a failure must not end the wait any more.
func (g *gathers) hold(seq uint64) bool {
	done, ok := g.waits[seq]
	if ok {
		delete(g.waits, seq)
		g.held[seq] = done
	}
	return ok
}

// withdraw ends AllGather seq, to which this rank may yet have to come.
func (g *gathers) withdraw(seq uint64, w *WithdrawnError) {
	if !g.end(seq, result{err: w}) {
		g.withdrawn[seq] = w
	}
}

// stop ends the AllGathers that cannot complete because a rank has left.
func (g *gathers) stop(l *rendezvous.Gone) {
	if g.stops == nil || l.Seq < g.stops.Seq {
		g.stops = l
	}
	for seq := range g.waits {
		if seq >= l.Seq {
			g.end(seq, result{err: &LeftError{l.Rank}})
		}
	}
}

// begin waits for AllGather seq, which may have failed already.
func (g *gathers) begin(seq uint64) chan result {
	done := make(chan result, 1)
	g.waits[seq] = done
	if w := g.withdrawn[seq]; w != nil {
		g.end(seq, result{err: w})
		delete(g.withdrawn, seq)
	}
	return done
}
