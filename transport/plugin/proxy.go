package plugin

import (
	"slices"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

// A mover is an end that carries on what was begun.
type mover interface {
	// try asks the plugin, unless somebody else does just now. It reports whether anything
	// went on or broke.
	try() bool
}

// enlist adds an end to those that the proxy looks after.
func (t *Transport) enlist(m mover) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append(slices.Clone(*t.movers.Load()), m)
	t.movers.Store(&all)
}

func (t *Transport) dismiss(m mover) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(*t.movers.Load()), func(x mover) bool { return x == m })
	t.movers.Store(&all)
}

// help carries on the sends of all connections, and the receives of those who are parked. It
// reports whether anything went on.
func (t *Transport) help() (moved bool) {
	if t.busy.Load() == 0 && t.idlers.Load() == 0 {
		return false
	}
	for _, m := range *t.movers.Load() {
		moved = m.try() || moved
	}
	return moved
}

// stir tells the proxy that there is something to do.
func (t *Transport) stir() {
	if t.resting.Load() {
		select {
		case t.rouse <- struct{}{}:
		default:
		}
	}
}

const (
	// minPause and maxPause are how long the proxy sleeps between two looks: 1/64 of the time in
	// which nothing happened.
	minPause = 50 * time.Microsecond
	maxPause = 20 * time.Millisecond
)

// proxy carries on what nobody is at: sends after the last wait of an operation, and the
// receives of those who are parked. One goroutine does that for all connections. It begins
// late, for mostly somebody does wait.
func (t *Transport) proxy() {
	for last := fifo.Now(); !t.ends.Closed(); {
		t.resting.Store(true)
		if t.busy.Load() == 0 && t.idlers.Load() == 0 {
			select {
			case <-t.rouse:
			case <-t.ends.Away():
			}
			last = fifo.Now()
		}
		t.resting.Store(false)
		nap(min(max(time.Duration(fifo.Now()-last)/64, minPause), maxPause))
		if t.help() {
			last = fifo.Now()
		}
	}
}
