package plugin

import (
	"slices"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport/internal/pace"
)

// A mover is an end whose requests make progress when the actor of the data calls step.
type mover interface {
	// step tests requests and posts new ones. It reports whether anything made progress or broke.
	step() bool
}

// enlist adds an end to the ends whose data the actor carries.
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

// yieldTime is how long the actor of the data polls without progress. Then the proxy makes it look now and then.
const yieldTime = 500 * time.Microsecond

// unguarded is the Guard of actors, which never ends: nobody can end their calls.
var unguarded fifo.Guard

func (t *Transport) newPace() pace.Waiter {
	return pace.Waiter{Guard: &unguarded, Spin: t.cfg.Spin, Yield: yieldTime}
}

// A round is the result of one look.
type round struct {
	moved   bool // something went on
	woke    bool // somebody who waited for it was woken
	waiting bool // somebody still waits
	watched bool // somebody polls
}

// look calls step of the ends that somebody waits for or has asked for, and of all ends with sends under way.
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

// work is the work of the actor of the data: one look. It reports whether another look has to follow soon. Sends under
// way while nobody waits are left to the proxy.
func (t *Transport) work() (again bool) {
	halves := *t.halves.Load()
	r := t.look(halves)
	if r.moved || t.fresh.Load() {
		t.fresh.Store(false)
		t.drowsy.Store(false)
		t.pace = t.newPace()
	}
	switch {
	case r.woke && !r.waiting && !r.watched: // the woken goroutine will ask again, and needs this core
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

// drowse leaves further looks to the proxy.
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

// proxy makes the actor of the data look now and then where nobody else does: for sends after the last wait of an
// operation, and for waits that have lasted longer than yieldTime.
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
				last = fifo.Now() // there was progress
			}
		}
	}
}
