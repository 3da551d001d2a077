package fifo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The model of a Work: all interleavings of its critical sections are tried.
// Everything in ledger.go happens under one mutex, so a step of the model is
// what a goroutine does between taking the mutex and parking or leaving; the
// functions have the names of those they mirror. Ticks come only while the
// Guard has ended, so that a lost wake-up is a deadlock here and not 5 ms.

const modelThreads = 4 // up to three producers and the carrier

type cond uint8

const (
	nowhere cond = iota
	turn
	room
	work
	done
)

// A modelThread is a goroutine: where it is in its program and on what it is parked.
type modelThread struct {
	launch uint8 // index of the launch under way
	item   uint8 // items of it that are in
	phase  uint8 // see produce and carry
	parked cond
	ended  bool
}

type modelState struct {
	ring                      [2]uint8 // item, from 1
	produced, taken, consumed uint8
	closed, busy, guardEnded  bool
	ends                      uint8 // how often the Guard has ended
	last                      uint8 // item that went in last
	carried                   uint32
	accepted, finished        uint32 // sets of items
	threads                   [modelThreads]modelThread
}

// A model is what does not change: programs and the fault that is planted.
type model struct {
	capacity   uint8
	programs   [][]uint8 // of each producer: the sizes of its launches
	takeMany   bool      // the carrier takes all there is before it finishes the first
	closeEarly bool      // Close may come at any time, not only at the end
	guardEnds  uint8     // how often the Guard may end and begin anew
	fault      string

	choice int // which of several parked threads a signal wakes
	wrong  string
}

func (m *model) signal(s *modelState, c cond) {
	var parked []int
	for i, t := range s.threads {
		if t.parked == c {
			parked = append(parked, i)
		}
	}
	if len(parked) > 0 {
		s.threads[parked[m.choice%len(parked)]].parked = nowhere
	}
}

func (m *model) broadcast(s *modelState, c cond) {
	for i := range s.threads {
		if s.threads[i].parked == c {
			s.threads[i].parked = nowhere
		}
	}
}

func (m *model) check(ok bool, format string, args ...any) {
	if !ok && m.wrong == "" {
		m.wrong = fmt.Sprintf(format, args...)
	}
}

// item numbers the items of all programs: 5 bits, from 1.
func (m *model) item(p int, launch, item uint8) uint8 {
	id := uint8(1)
	for q, sizes := range m.programs {
		for l, n := range sizes {
			if q == p && l == int(launch) {
				return id + item
			}
			id += n
		}
	}
	panic("no such item")
}

func (m *model) isFull(s *modelState) bool {
	if m.fault == "room is made by Next" {
		return s.produced-s.taken == m.capacity
	}
	return s.produced-s.consumed == m.capacity
}

// wait parks t, or says that the Guard has ended.
func (m *model) wait(s *modelState, t *modelThread, c cond) (ended bool) {
	if !s.guardEnded {
		t.parked = c
	}
	return s.guardEnded
}

// produce runs producer p until it parks or a call returns.
func (m *model) produce(s *modelState, p int) {
	t := &s.threads[p]
	sizes := m.programs[p]
	leave := func() { // the call fails; so will the rest of the program
		t.launch, t.item, t.phase = t.launch+1, 0, 0
		t.ended = int(t.launch) == len(sizes)
	}
	end := func() {
		s.busy = false
		if m.fault != "end does not signal the turn" {
			m.signal(s, turn)
		}
	}
	switch t.phase {
	case 0: // begin
		if s.busy && !s.closed && m.fault != "no turns" {
			if m.wait(s, t, turn) {
				leave()
			}
			return
		}
		if s.closed {
			leave()
			return
		}
		s.busy = true
		t.phase = 1
		fallthrough
	case 1: // waitRoom and put, for each item
		for ; t.item < sizes[t.launch]; t.item++ {
			if m.isFull(s) && !s.closed {
				if m.wait(s, t, room) {
					end()
					leave()
				}
				return
			}
			if s.closed {
				end()
				leave()
				return
			}
			m.put(s, m.item(p, t.launch, t.item), t.item > 0)
		}
		end()
		t.phase = 2
	case 2: // Token.Wait
		last := m.item(p, t.launch, sizes[t.launch]-1)
		if s.finished&(1<<last) == 0 && !m.wait(s, t, done) {
			return
		}
		leave()
	}
}

func (m *model) put(s *modelState, id uint8, inGroup bool) {
	m.check(!inGroup || s.last == id-1, "item %d came into the group of %d", s.last, id)
	m.check(s.accepted&(1<<id) == 0, "item %d went in twice", id)
	s.last = id
	s.accepted |= 1 << id
	s.ring[s.produced%m.capacity] = id
	s.produced++
	if m.fault != "put does not signal work" {
		m.signal(s, work)
	}
}

// carry runs the carrier until it parks, takes an item or finishes one.
func (m *model) carry(s *modelState) {
	t := &s.threads[modelThreads-1]
	finish := func() {
		id := s.ring[s.consumed%m.capacity]
		m.check(s.carried&(1<<id) != 0, "item %d was overwritten before it was done", id)
		s.finished |= 1 << id
		s.ring[s.consumed%m.capacity] = 0
		s.consumed++
		if m.fault != "Done does not signal room" {
			m.signal(s, room)
		}
		if m.fault == "Done wakes one waiter only" {
			m.signal(s, done)
		} else {
			m.broadcast(s, done)
		}
	}
	inHand := s.taken != s.consumed
	switch {
	case inHand && (!m.takeMany || s.taken == s.produced):
		finish()
	case s.taken < s.produced:
		id := s.ring[s.taken%m.capacity]
		m.check(id != 0 && s.carried&(1<<id) == 0, "item %d was carried out twice", id)
		s.carried |= 1 << id
		s.taken++
	case s.closed:
		t.ended = true
	default:
		t.parked = work
	}
}

// next gives all states that may follow s.
func (m *model) next(s modelState) []modelState {
	var all []modelState
	add := func(f func(*modelState)) {
		for m.choice = range modelThreads {
			n := s
			f(&n)
			all = append(all, n)
		}
	}
	producing := false
	for p := range m.programs {
		t := s.threads[p]
		producing = producing || !t.ended
		if !t.ended && t.parked == nowhere {
			add(func(n *modelState) { m.produce(n, p) })
		}
	}
	if t := s.threads[modelThreads-1]; !t.ended && t.parked == nowhere {
		add(m.carry)
	}
	if !s.closed && (m.closeEarly || !producing) {
		add(func(n *modelState) {
			n.closed = true
			m.broadcast(n, turn)
			m.broadcast(n, room)
			if m.fault != "Close does not wake the carrier" {
				m.broadcast(n, work)
			}
		})
	}
	switch {
	case s.guardEnded:
		add(func(n *modelState) { n.guardEnded = false }) // the next operation has a deadline of its own
		tick := s
		for _, c := range []cond{turn, room, done} {
			m.broadcast(&tick, c)
		}
		all = append(all, tick)
	case s.ends < m.guardEnds:
		add(func(n *modelState) { n.guardEnded = true; n.ends++ })
	}
	return all
}

// explore visits all states and returns their number, and what was wrong.
func (m *model) explore() (int, string) {
	start := modelState{}
	for p := len(m.programs); p < modelThreads-1; p++ {
		start.threads[p].ended = true
	}
	seen := map[modelState]bool{start: true}
	todo := []modelState{start}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		m.check(s.consumed <= s.taken && s.taken <= s.produced && s.produced-s.consumed <= m.capacity,
			"produced %d, taken %d, consumed %d, capacity %d", s.produced, s.taken, s.consumed, m.capacity)
		stuck := true
		for _, n := range m.next(s) {
			stuck = stuck && n == s
			if !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
		if stuck {
			m.checkEnd(s)
		}
		if m.wrong != "" {
			return len(seen), m.wrong
		}
	}
	return len(seen), ""
}

func (m *model) checkEnd(s modelState) {
	for i, t := range s.threads {
		m.check(t.ended, "deadlock: thread %d is parked on %d: %+v", i, t.parked, s)
	}
	m.check(s.accepted == s.carried && s.accepted == s.finished, "lost: in %b, carried out %b, done %b", s.accepted, s.carried, s.finished)
	if !m.closeEarly && m.guardEnds == 0 {
		count := uint8(0)
		for _, sizes := range m.programs {
			for _, n := range sizes {
				count += n
			}
		}
		m.check(s.produced == count, "only %d of %d items went in", s.produced, count)
	}
}

var modelPrograms = map[string][][]uint8{
	"one group larger than the ring":      {{4}},
	"two groups larger than the ring":     {{3}, {3}},
	"a group and two single items":        {{3}, {1, 1}},
	"three producers":                     {{2}, {1, 1}, {1}},
	"three producers with two items each": {{1, 1}, {2}, {1, 1}},
}

func TestWorkModel(t *testing.T) {
	total := 0
	for name, programs := range modelPrograms {
		for _, capacity := range []uint8{1, 2} {
			for _, takeMany := range []bool{false, true} {
				for _, closeEarly := range []bool{false, true} {
					for _, ends := range []uint8{0, 2} { // 2 includes 1
						m := model{capacity: capacity, programs: programs, takeMany: takeMany, closeEarly: closeEarly, guardEnds: ends}
						n, wrong := m.explore()
						require.Empty(t, wrong, "%s, capacity %d, many %v, close early %v, guard ends %d", name, capacity, takeMany, closeEarly, ends)
						total += n
					}
				}
			}
		}
	}
	t.Logf("%d states", total)
}

// The model must be able to fail: each planted fault is found.
func TestWorkModelFindsFaults(t *testing.T) {
	for _, fault := range []string{
		"end does not signal the turn",
		"put does not signal work",
		"Done does not signal room",
		"Done wakes one waiter only",
		"Close does not wake the carrier",
		"room is made by Next",
		"no turns",
	} {
		t.Run(fault, func(t *testing.T) {
			found := ""
			for _, programs := range modelPrograms {
				for _, capacity := range []uint8{1, 2} {
					m := model{capacity: capacity, programs: programs, takeMany: capacity == 2, fault: fault}
					if _, wrong := m.explore(); wrong != "" {
						found = wrong
					}
				}
			}
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}
