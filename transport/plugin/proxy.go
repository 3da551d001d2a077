package plugin

import (
	"slices"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport/internal/pace"
)

// A mover is an end that carries on what was begun. The actor of the data calls it.
type mover interface {
	// step asks the plugin. It reports whether anything went on or broke.
	step() bool
}

// enlist adds an end to those whose data are carried.
func (t *Transport) enlist(h *half) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append(slices.Clone(*t.halves.Load()), h)
	t.halves.Store(&all)
}

func (t *Transport) dismiss(h *half) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(*t.halves.Load()), func(x *half) bool { return x == h })
	t.halves.Store(&all)
}

// yieldTime is how long the actor of the data looks again and again. Then the proxy has it look.
const yieldTime = 500 * time.Microsecond

// unguarded is the Guard of actors: nobody can end their calls.
var unguarded fifo.Guard

func (t *Transport) newPace() pace.Waiter {
	return pace.Waiter{Guard: &unguarded, Spin: t.cfg.Spin, Yield: yieldTime}
}

// A round is what came of one look.
type round struct {
	moved   bool // something went on
	woke    bool // somebody who had waited for that
	waiting bool // somebody still waits
	watched bool // somebody looks again and again
}

// look carries on the ends that somebody waits for or was asked to look at, and all sends under way.
func (t *Transport) look(halves []*half) (r round) {
	for _, h := range halves {
		if !h.asked.Load() && !h.waiting.Load() && !h.watched.Load() && !h.busy.Load() {
			continue
		}
		h.asked.Store(false)
		if h.mover.step() {
			r.moved = true
			r.woke = h.wake() || r.woke
		}
		r.waiting = r.waiting || h.waiting.Load()
		r.watched = r.watched || h.watched.Load()
	}
	return r
}

// work is the work of the actor of the data: a look, and whether another is to follow soon. A send under way when
// nobody waits is left to the proxy.
func (t *Transport) work() (again bool) {
	halves := *t.halves.Load()
	r := t.look(halves)
	if r.moved || t.fresh.Load() {
		t.fresh.Store(false)
		t.drowsy.Store(false)
		t.pace = t.newPace()
	}
	switch {
	case r.woke && !r.waiting && !r.watched: // who was woken asks again, and waits for this core
	case r.moved:
		return true
	}
	if r.waiting || r.watched {
		if sleep, _ := t.pace.Pause(); !sleep {
			return true
		}
	}
	if r.watched {
		for _, h := range halves {
			h.watched.Store(false)
		}
	}
	if r.waiting || t.busy.Load() > 0 {
		t.drowse()
	} else {
		t.drowsy.Store(false)
	}
	return false
}

// drowse leaves it to the proxy to have the actor look.
func (t *Transport) drowse() {
	if t.drowsy.Swap(true) {
		return
	}
	select {
	case t.rouse <- struct{}{}:
	default:
	}
}

const (
	// minPause and maxPause are how long the proxy sleeps between two looks: 1/64 of the time in
	// which nothing happened.
	minPause = 50 * time.Microsecond
	maxPause = 20 * time.Millisecond
)

// proxy has the actor of the data look now and then for what nobody is at: sends after the last wait of an
// operation, and what was waited for in vain for yieldTime.
func (t *Transport) proxy() {
	for {
		select {
		case <-t.rouse:
		case <-t.ends.Away():
			return
		}
		for last := fifo.Now(); (t.drowsy.Load() || t.busy.Load() > 0) && !t.ends.Closed(); {
			nap(min(max(time.Duration(fifo.Now()-last)/64, minPause), maxPause))
			if t.drowsy.Load() {
				t.data.ask()
			} else {
				last = fifo.Now() // something goes on
			}
		}
	}
}
