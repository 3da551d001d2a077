package ras

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"slices"
	"time"
)

// How a process answered.
type heard int

const (
	answered heard = iota
	silent         // no answer: stopped, or cut off
	left           // lives, and has no communicator any more
	dead
)

// A Survey holds the answers of all processes of a job at one moment.
type Survey struct {
	Comms     []Comm    // the largest first
	Processes []Process // by address and number
	Began     time.Time
	Took      time.Duration
	Timeouts  int // processes that were waited for in vain
}

// A Process is a process of the job.
type Process struct {
	Card    Card
	Heard   heard
	Devices []int // its GPUs by the driver's numbers, ascending
}

// A Comm is a communicator.
type Comm struct {
	ID      string
	Size    int
	Ranks   []Rank // ranks that answer, ascending
	Missing []Rank // ranks that do not answer, or are no members any more
}

// A Rank is one of a communicator.
type Rank struct {
	Rank         int
	Card         Card // of its process, with the rank's own device
	Heard        heard
	Now          Now
	Device, NVML int
}

// Hash is the communicator's number in answers, with two more that make it unique.
func (c *Comm) Hash() (first, second, third uint64) {
	sum := sha256.Sum256([]byte(c.ID))
	return binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:]), binary.BigEndian.Uint64(sum[16:])
}

const (
	// askers bounds how many processes are asked at a time.
	askers = 256
	// again is how long a survey waits for a process that did not answer the last one.
	again = 250 * time.Millisecond
)

// A tally is a survey under way.
type tally struct {
	s         *server
	processes map[string]*Process
	replies   chan reply
	under     int // way: questions
	slots     chan struct{}
	cards     map[string][]Card  // by communicator, then rank; without Key: none
	ranks     map[string][]entry // that answered, by communicator
}

func newTally(s *server) *tally {
	return &tally{
		s: s, processes: map[string]*Process{}, replies: make(chan reply), slots: make(chan struct{}, askers),
		cards: map[string][]Card{}, ranks: map[string][]entry{},
	}
}

type reply struct {
	process string
	report  report
	heard   heard
	late    bool // the wait for its answer timed out
}

// survey asks all processes of the job, and waits for each at most wait. Concurrent clients share a survey, if it began
// after their questions.
func (s *server) survey(wait time.Duration) *Survey {
	asked := time.Now()
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.last != nil && s.last.Began.After(asked) {
		return s.last
	}
	t := newTally(s)
	x := &Survey{Began: time.Now()}
	own := s.card
	t.processes[own.process()] = &Process{Card: own}
	ctx, cancel := context.WithTimeout(s.began, wait)
	defer cancel()
	t.take(ctx, wait, s.report(nil))
	slow := map[string]bool{}
	for t.under > 0 {
		r := <-t.replies
		t.under--
		t.processes[r.process].Heard = r.heard
		if r.late {
			x.Timeouts++
			slow[r.process] = true
		}
		t.take(ctx, wait, r.report)
	}
	s.mu.Lock()
	s.slow = slow
	s.mu.Unlock()
	t.compile(x)
	x.Took = time.Since(x.Began)
	s.last = x
	return x
}

// take notes a process's report, and asks the processes that the report has shown.
func (t *tally) take(ctx context.Context, wait time.Duration, r report) {
	for _, e := range r.Ranks {
		if e.Size < 1 || e.Size > maxRanks || e.Rank < 0 || e.Rank >= e.Size || len(e.Cards) != 0 && len(e.Cards) != e.Size {
			continue // no process of ours says such a thing
		}
		if len(e.Cards) > 0 && t.cards[e.Comm] == nil {
			t.cards[e.Comm] = cardsOf(e.Cards)
		}
		if len(t.cards[e.Comm]) == e.Size {
			e.Cards = nil
			t.ranks[e.Comm] = append(t.ranks[e.Comm], e)
		}
	}
	known := slices.Sorted(maps.Keys(t.cards))
	for _, cards := range t.cards {
		for i := range cards {
			c := &cards[i]
			if name := c.process(); c.Pid > 0 && t.processes[name] == nil {
				t.processes[name] = &Process{Card: *c}
				t.under++
				go t.question(ctx, wait, *c, known)
			}
		}
	}
}

// maxRanks is more than a communicator has.
const maxRanks = 1 << 20

// cardsOf reads cards. A rank without one keeps the zero Card.
func cardsOf(all [][]byte) []Card {
	cards := make([]Card, len(all))
	here := map[[keyBytes]byte]int{}
	for i, b := range all {
		c, err := ParseCard(b)
		if err != nil {
			continue
		}
		if c.Device == OnHost { // ranks of a process must not look like one
			c.Device, c.NVML = here[c.Key], here[c.Key]
		}
		here[c.Key]++
		cards[i] = c
	}
	return cards
}

// question asks one process.
func (t *tally) question(ctx context.Context, wait time.Duration, c Card, known []string) {
	t.slots <- struct{}{}
	defer func() { <-t.slots }()
	name := c.process()
	r := reply{process: name}
	if c.Machine == t.s.card.Machine {
		if ended, stopped := alive(c.Pid); ended || stopped {
			if r.heard = silent; ended {
				r.heard = dead
			}
			t.replies <- r
			return
		}
	}
	t.s.mu.Lock()
	if t.s.slow[name] {
		wait = min(wait, again)
	}
	t.s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var err error
	switch r.report, err = t.s.ask(ctx, &c, known); {
	case err == nil:
	case refused(err):
		r.heard = left // whether the process died is in the reports of its peers
	default:
		r.heard, r.late = silent, ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded)
	}
	t.replies <- r
}

// compile puts together what was said.
func (t *tally) compile(x *Survey) {
	devices := map[string]map[int]bool{}
	for id, cards := range t.cards {
		c := Comm{ID: id, Size: len(cards)}
		said := map[int]entry{}
		for _, e := range t.ranks[id] {
			said[e.Rank] = e
			for _, r := range e.Now.Died {
				if r >= 0 && r < len(cards) && cards[r].Pid > 0 {
					if p := t.processes[cards[r].process()]; p.Heard == left || p.Heard == silent {
						p.Heard = dead
					}
				}
			}
		}
		for i := range cards {
			r := Rank{Rank: i, Card: cards[i], Device: cards[i].Device, NVML: cards[i].NVML}
			if r.Card.Pid > 0 {
				name := r.Card.process()
				r.Heard = t.processes[name].Heard
				if devices[name] == nil {
					devices[name] = map[int]bool{}
				}
				devices[name][r.NVML] = true
			} else { // it has RAS switched off
				r.Heard, r.Device, r.NVML = left, OnHost, OnHost
			}
			if e, ok := said[i]; ok {
				r.Now = e.Now
				c.Ranks = append(c.Ranks, r)
			} else {
				c.Missing = append(c.Missing, r)
			}
		}
		x.Comms = append(x.Comms, c)
	}
	slices.SortFunc(x.Comms, func(a, b Comm) int { return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.ID, b.ID)) })
	for name, p := range t.processes {
		p.Devices = slices.Sorted(maps.Keys(devices[name]))
		x.Processes = append(x.Processes, *p)
	}
	slices.SortFunc(x.Processes, func(a, b Process) int {
		return cmp.Or(cmp.Compare(a.Card.Host, b.Card.Host), cmp.Compare(a.Card.Pid, b.Card.Pid),
			cmp.Compare(a.Card.process(), b.Card.process()))
	})
	for i := range x.Comms { // a process that one communicator knows to be dead is dead in all
		for k := range x.Comms[i].Missing {
			if r := &x.Comms[i].Missing[k]; r.Card.Pid > 0 {
				r.Heard = t.processes[r.Card.process()].Heard
			}
		}
	}
}
