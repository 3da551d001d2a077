package sched

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// run carries out all ranks of s on paper. Between each ordered pair of ranks is
// a queue of depth messages; a step waits until its message has come and there
// is room for the one it sends, and then happens at once: do gets the received message
// and returns the one to send.
//
// One order of execution stands for all. A queue has one writer and one reader
// and each rank's steps have a fixed order, so a step that can happen still can
// after any other has happened: either every order ends or every order gets
// stuck at the same steps, with the same messages (Kahn, "The semantics of a
// simple language for parallel programming", 1974).
//
// An error of do ends the run, unless it is a halt: that ends the rank alone.
func run[M any](s Schedule, depth int, do func(r Rank, i int, t Step, got M) (M, error)) error {
	n := s.Shape().Ranks
	if n < 0 || depth < 1 {
		return fmt.Errorf("%d ranks with queues of depth %d: a queue must hold a message", n, depth)
	}
	m := machine[M]{s: s, depth: depth, next: make([]int, n), queues: map[pair]*queue[M]{}}
	todo := make([]Rank, n)
	for i := range todo {
		todo[i] = Rank(n - 1 - i)
	}
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for end := s.Len(r); m.next[r] < end; m.next[r]++ {
			t := s.At(r, m.next[r])
			if err := t.peers(n); err != nil {
				return at(r, m.next[r], t, err)
			}
			in, out := m.queue(t.Recv, r), m.queue(r, t.Send)
			if in != nil && len(*in) == 0 || out != nil && len(*out) == depth {
				break
			}
			var v M
			if in != nil {
				if v = in.pop(); len(*in) == depth-1 {
					todo = append(todo, t.Recv) // may have waited for room
				}
			}
			v, err := do(r, m.next[r], t, v)
			if _, ok := err.(halt); ok {
				m.next[r] = math.MaxInt
				break
			}
			if err != nil {
				return at(r, m.next[r], t, err)
			}
			if out != nil {
				if *out = append(*out, v); len(*out) == 1 {
					todo = append(todo, t.Send) // may have waited for a message
				}
			}
		}
	}
	return cmp.Or(m.stuck(), m.leftover())
}

// halt is the error of a step after which its rank does nothing more, and the others go on.
type halt struct{ error }

type machine[M any] struct {
	s      Schedule
	depth  int
	next   []int // the step each rank is at
	queues map[pair]*queue[M]
}

type pair struct{ from, to Rank }

type queue[M any] []M

func (q *queue[M]) pop() M {
	v := (*q)[0]
	*q = append((*q)[:0], (*q)[1:]...)
	return v
}

func (m *machine[M]) queue(from, to Rank) *queue[M] {
	if from == Nobody || to == Nobody {
		return nil
	}
	q := m.queues[pair{from, to}]
	if q == nil {
		q = new(queue[M])
		m.queues[pair{from, to}] = q
	}
	return q
}

// stuck says which ranks did not come to their end, and why.
func (m *machine[M]) stuck() error {
	const shown = 16
	var lines []string
	var faults []Fault
	for i, next := range m.next {
		r := Rank(i)
		if next >= m.s.Len(r) {
			continue
		}
		t := m.s.At(r, next)
		why := fmt.Sprintf("the queue to rank %d is full", t.Send)
		if in := m.queue(t.Recv, r); in != nil && len(*in) == 0 {
			why = fmt.Sprintf("nothing comes from rank %d", t.Recv)
		}
		lines = append(lines, fmt.Sprintf("rank %d step %d (%v): %s", r, next, t, why))
		faults = append(faults, Fault{r, next, -1, why})
	}
	if len(lines) == 0 {
		return nil
	}
	head := fmt.Sprintf("deadlock at depth %d, %d of %d ranks wait:", m.depth, len(lines), len(m.next))
	if more := len(lines) - shown; more > 0 {
		lines = append(lines[:shown], fmt.Sprintf("and %d more", more))
	}
	return &Refutation{faults, errors.New(head + "\n\t" + strings.Join(lines, "\n\t"))}
}

// leftover says which messages nobody received.
func (m *machine[M]) leftover() error {
	byPair := func(a, b pair) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }
	for _, p := range slices.SortedFunc(maps.Keys(m.queues), byPair) {
		if left := len(*m.queues[p]); left > 0 {
			err := fmt.Errorf("%d of the messages from rank %d to rank %d are never received", left, p.from, p.to)
			return &Refutation{[]Fault{{p.to, -1, -1, err.Error()}}, err}
		}
	}
	return nil
}

func (t Step) peers(n int) error {
	for _, p := range []Rank{t.Recv, t.Send} {
		if p < Nobody || p >= Rank(n) {
			return fmt.Errorf("peer %d is none of the %d ranks", p, n)
		}
	}
	return nil
}

func at(r Rank, i int, t Step, err error) error {
	return &Refutation{[]Fault{{r, i, -1, err.Error()}}, fmt.Errorf("rank %d step %d (%v): %w", r, i, t, err)}
}
