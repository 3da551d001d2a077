package fifo

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The model of a Work. Everything in work.go happens under one mutex, so a
// step of the model is what a goroutine does between taking the mutex and
// parking or leaving; the model's methods have the names of Work's. A tick
// comes only while the Guard has ended, so that a lost wake-up is a deadlock here
// and not 5 ms. TestWorkModel tries all interleavings; TestWorkLikeModel compares
// the code with it.

const (
	modelThreads = 4 // up to three producers, then the carrier
	carrier      = modelThreads - 1
)

type cond uint8

const (
	nowhere cond = iota
	room
	work
)

type call uint8

const (
	idle call = iota
	push
	next
)

var callNames = []string{"", "push", "next"}

type result uint8

const (
	ok result = iota
	isClosed
	guardEnded
)

// A modelThread is a goroutine: the call it is in, on what it is parked, and
// what its last call returned.
type modelThread struct {
	call   call
	parked cond
	result result
	tried  uint8 // items of its program that it has pushed, in vain or not
}

type modelState struct {
	ring                        [3]uint8 // item, from 1
	produced, taken, consumed   uint8
	closed, ended, renewed      bool   // the latter two are the Guard's
	accepted, carried, finished uint32 // sets of items
	threads                     [modelThreads]modelThread
}

// A model is what does not change: programs and the fault that is planted.
type model struct {
	capacity uint8
	programs []uint8 // of each producer: how many items it pushes
	anyEnd   bool    // Close may come at any time, not only at the end, and the Guard may end once and begin anew
	fault    string

	wrong string
}

// item numbers the items of all programs, from 1.
func (m *model) item(p int, k uint8) uint8 {
	id := 1 + k
	for _, n := range m.programs[:p] {
		id += n
	}
	return id
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

func (t *modelThread) leave(r result) { t.call, t.result = idle, r }

// park parks t, unless the Guard has ended.
func (s *modelState) park(t *modelThread, c cond) {
	if s.ended {
		t.leave(guardEnded)
		return
	}
	t.parked = c
}

// push is a critical section of Push by producer p.
func (m *model) push(s *modelState, p int) {
	t := &s.threads[p]
	used := s.produced - s.consumed
	if m.fault == "room is made by Next" {
		used = s.produced - s.taken
	}
	switch {
	case s.closed:
		t.leave(isClosed)
	case used == m.capacity:
		if s.park(t, room); t.call != idle {
			return
		}
	default:
		id := m.item(p, t.tried)
		m.check(s.accepted&(1<<id) == 0, "item %d went in twice", id)
		m.check(s.ring[s.produced%m.capacity] == 0, "item %d went in over another", id)
		s.accepted |= 1 << id
		s.ring[s.produced%m.capacity] = id
		s.produced++
		if m.fault != "Push does not signal work" {
			m.broadcast(s, work) // one goroutine waits for it
		}
		t.leave(ok)
	}
	t.tried++
}

// next is a critical section of Next.
func (m *model) next(s *modelState) {
	t := &s.threads[carrier]
	switch {
	case s.taken < s.produced:
		id := s.ring[s.taken%m.capacity]
		m.check(id != 0 && s.carried&(1<<id) == 0, "item %d was carried out twice", id)
		s.carried |= 1 << id
		s.taken++
		t.leave(ok)
	case s.closed:
		t.leave(isClosed)
	default:
		t.parked = work
	}
}

// done is Done.
func (m *model) done(s *modelState) {
	id := s.ring[s.consumed%m.capacity]
	s.ring[s.consumed%m.capacity] = 0
	s.finished |= 1 << id
	s.consumed++
	if m.fault != "Done does not wake for room" {
		m.broadcast(s, room)
	}
}

func (m *model) close(s *modelState) {
	s.closed = true
	m.broadcast(s, room)
	if m.fault != "Close does not wake the carrier" {
		m.broadcast(s, work)
	}
}

// section is a critical section of the call that thread i is in.
func (m *model) section(s *modelState, i int) {
	switch s.threads[i].call {
	case push:
		m.push(s, i)
	case next:
		m.next(s)
	}
}

// An action is what the threads do of their own accord, not because they were
// woken.
type action struct {
	what   string // a call of a thread, or "done", "close", "end", "renew", "tick"
	thread int
}

// actions are the actions that are possible in s.
func (m *model) actions(s *modelState) (all []action) {
	producing := false
	for p, n := range m.programs {
		t := &s.threads[p]
		producing = producing || t.tried < n
		if t.call == idle && t.tried < n {
			all = append(all, action{"push", p})
		}
	}
	if t := &s.threads[carrier]; t.call == idle && t.result == ok {
		all = append(all, action{"next", carrier})
	}
	if s.consumed < s.taken {
		all = append(all, action{"done", carrier})
	}
	if !s.closed && (m.anyEnd || !producing) {
		all = append(all, action{"close", 0})
	}
	switch {
	case s.ended:
		all = append(all, action{"renew", 0}, action{"tick", 0})
	case m.anyEnd && !s.renewed:
		all = append(all, action{"end", 0})
	}
	return all
}

// act does one action.
func (m *model) act(s *modelState, a action) {
	switch a.what {
	case "done":
		m.done(s)
	case "close":
		m.close(s)
	case "end":
		s.ended = true
	case "renew":
		s.ended, s.renewed = false, true // the next operation has a deadline of its own
	case "tick":
		m.broadcast(s, room)
	default:
		s.threads[a.thread].call = call(slices.Index(callNames, a.what))
		m.section(s, a.thread)
	}
}

// woken is every state that follows s when one woken thread goes on.
func (m *model) woken(s modelState) (all []modelState) {
	for i, t := range s.threads {
		if t.call != idle && t.parked == nowhere {
			n := s
			m.section(&n, i)
			all = append(all, n)
		}
	}
	return all
}

// explore visits all states and returns their number, and what was wrong.
func (m *model) explore() (int, string) {
	seen := map[modelState]bool{{}: true}
	for todo := []modelState{{}}; len(todo) > 0 && m.wrong == ""; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		m.check(s.consumed <= s.taken && s.taken <= s.produced && s.produced-s.consumed <= m.capacity,
			"produced %d, taken %d, consumed %d, capacity %d", s.produced, s.taken, s.consumed, m.capacity)
		all := m.woken(s)
		for _, a := range m.actions(&s) {
			n := s
			m.act(&n, a)
			all = append(all, n)
		}
		stuck := true
		for _, n := range all {
			stuck = stuck && n == s
			if !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
		if stuck {
			m.checkEnd(s)
		}
	}
	return len(seen), m.wrong
}

// checkEnd looks at a state in which nothing can happen any more.
func (m *model) checkEnd(s modelState) {
	for i, t := range s.threads {
		m.check(t.call == idle, "deadlock: thread %d is parked on %d: %+v", i, t.parked, s)
	}
	m.check(s.accepted == s.carried && s.accepted == s.finished, "lost: in %b, carried out %b, done %b", s.accepted,
		s.carried, s.finished)
}

var modelPrograms = [][]uint8{{5}, {3, 3}, {2, 1, 1}, {2, 2, 2}}

// models are all variants of the model. Those without anyEnd can get stuck when
// a wake-up is lost; in the others Close or the Guard would help.
func models(yield func(name string, m model)) {
	for _, programs := range modelPrograms {
		for capacity := uint8(1); capacity <= 3; capacity++ {
			for _, anyEnd := range []bool{false, true} {
				yield(fmt.Sprintf("producers of %d items, capacity %d, any end %v", programs, capacity, anyEnd),
					model{capacity: capacity, programs: programs, anyEnd: anyEnd})
			}
		}
	}
}

func TestWorkModel(t *testing.T) {
	total := 0
	models(func(name string, m model) {
		n, wrong := m.explore()
		require.Empty(t, wrong, name)
		total += n
	})
	t.Logf("%d states", total)
}

// The model must be able to fail: each planted fault is found.
func TestWorkModelFindsFaults(t *testing.T) {
	for _, fault := range []string{
		"Push does not signal work",
		"Done does not wake for room",
		"Close does not wake the carrier",
		"room is made by Next",
	} {
		t.Run(fault, func(t *testing.T) {
			found := ""
			models(func(_ string, m model) {
				m.fault = fault
				if m.anyEnd || found != "" {
					return
				}
				if _, wrong := m.explore(); wrong != "" {
					found = wrong
				}
			})
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}
