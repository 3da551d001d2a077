package fifo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A double is a Work with goroutines that do what the threads of a model do, one
// action at a time. Time is virtual, and passes for a tick alone: a thread that
// was not woken stays parked.
type double struct {
	m     *model
	guard Guard
	work  *Work[uint8]

	mu      sync.Mutex // for the race detector, which does not know that all are at rest
	threads [modelThreads]*doubleThread
}

type doubleThread struct {
	calls  chan func() result
	in     bool
	result result
	tried  uint8
}

func newDouble(m *model) *double {
	d := &double{m: m}
	d.work = NewWork[uint8](int(m.capacity), &d.guard)
	for i := range d.threads {
		t := &doubleThread{calls: make(chan func() result)}
		d.threads[i] = t
		go func() {
			for call := range t.calls {
				r := call()
				d.mu.Lock()
				t.result, t.in = r, false
				d.mu.Unlock()
			}
		}()
	}
	return d
}

func resultOf(err error) result {
	switch {
	case err == nil:
		return ok
	case errors.Is(err, ErrClosed):
		return isClosed
	case errors.Is(err, ErrDeadline):
		return guardEnded
	}
	panic(err)
}

// act does one action and waits until all threads have left or are parked.
func (d *double) act(a action) {
	t, w := d.threads[a.thread], d.work
	do := func(call func() result) {
		d.mu.Lock()
		t.in = true
		d.mu.Unlock()
		t.calls <- call
	}
	switch a.what {
	case "push":
		item := d.m.item(a.thread, t.tried)
		t.tried++
		do(func() result { return resultOf(w.Push(item)) })
	case "next":
		do(func() result { _, err := w.Next(); return resultOf(err) })
	case "done":
		w.Done()
	case "close":
		w.Close()
	case "end":
		d.guard.SetDeadline(Now() - 1)
	case "renew":
		d.guard.SetDeadline(0)
	case "tick":
		time.Sleep(tickPeriod)
	}
	synctest.Wait()
}

// seen is what can be seen of a Work and of the threads at rest.
func (d *double) seen() string {
	w := d.work
	w.mu.Lock()
	s := fmt.Sprintf("produced %d, taken %d, consumed %d\n", w.produced, w.taken, w.consumed)
	w.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.threads {
		s += show(t.in, t.result)
	}
	return s
}

func (s *modelState) seen() string {
	str := fmt.Sprintf("produced %d, taken %d, consumed %d\n", s.produced, s.taken, s.consumed)
	for _, t := range s.threads {
		str += show(t.call != idle, t.result)
	}
	return str
}

func show(in bool, r result) string {
	if in {
		return "waits\n"
	}
	return fmt.Sprintf("returned %d\n", r)
}

// rest is every state that s may come to rest in.
func (m *model) rest(s modelState) (all []modelState) {
	seen := map[modelState]bool{s: true}
	for todo := []modelState{s}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		next := m.woken(s)
		if len(next) == 0 {
			all = append(all, s)
		}
		for _, n := range next {
			if !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
	}
	return all
}

func (s *modelState) waiting() bool {
	return slices.ContainsFunc(s.threads[:], func(t modelThread) bool { return t.call != idle })
}

// walk does random actions to the code and to the model until no more is
// possible. After each the code must be in a state that the model may be in.
func walk(t *testing.T, name string, m model, seed uint64) {
	random := rand.New(rand.NewPCG(1, seed))
	d := newDouble(&m)
	time.Sleep(time.Millisecond) // so that a deadline can lie in the past
	defer func() {
		for _, t := range d.threads {
			close(t.calls)
		}
	}()
	possible := []modelState{{}}
	var told strings.Builder
	for step := range 200 {
		s := &possible[0]
		actions := m.actions(s)
		if step > 50 { // come to an end
			actions = slices.DeleteFunc(actions, func(a action) bool {
				return a.what == "renew" || a.what == "tick" && !s.waiting()
			})
		}
		if len(actions) == 0 {
			break
		}
		a := actions[random.IntN(len(actions))]
		fmt.Fprintf(&told, "%s by %d\n", a.what, a.thread)
		d.act(a)
		var next []modelState
		for _, s := range possible {
			m.act(&s, a)
			next = append(next, m.rest(s)...)
		}
		seen := d.seen()
		possible = slices.DeleteFunc(slices.Clone(next), func(s modelState) bool { return s.seen() != seen })
		if len(possible) == 0 {
			t.Fatalf("%s, seed %d:\n%sthe code: %sthe model: %s", name, seed, told.String(), seen, next[0].seen())
		}
	}
}

// TestWorkLikeModel: whatever is done in whatever order, the code comes to a
// state that the model comes to, without the help of a tick.
func TestWorkLikeModel(t *testing.T) {
	noLeaks(t)
	models(func(name string, m model) {
		for seed := range uint64(20) {
			inBubble(t, func(t *testing.T) { walk(t, name, m, seed) })
		}
	})
}
