// Package listen is what the transports with sockets have in common: how a rank
// dials and proves itself, how a listener answers, and where connections wait until
// they are accepted.
package listen

import (
	"sync"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

// Arrivals holds things of type T that arrived for a rank, first come first
// served. All methods may be called from any goroutine.
type Arrivals[T any] struct {
	mu      sync.Mutex
	arrived map[int][]T
	changed chan struct{} // closed and replaced at each arrival
	closed  bool
}

// NewArrivals is an empty Arrivals.
func NewArrivals[T any]() *Arrivals[T] {
	return &Arrivals[T]{arrived: make(map[int][]T), changed: make(chan struct{})}
}

// Put adds what came from rank. It reports false if the Arrivals is closed; then
// the caller still owns it.
func (a *Arrivals[T]) Put(rank int, t T) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.arrived[rank] = append(a.arrived[rank], t)
	a.announce()
	return true
}

func (a *Arrivals[T]) announce() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// patience is how often a wait looks at its Guard.
const patience = 20 * time.Millisecond

// Take waits for something from rank. Errors: the Guard has ended, or
// fifo.ErrClosed.
func (a *Arrivals[T]) Take(rank int, guard *fifo.Guard) (t T, err error) {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for {
		a.mu.Lock()
		q, closed, changed := a.arrived[rank], a.closed, a.changed
		if len(q) > 0 {
			a.arrived[rank] = q[1:]
		}
		a.mu.Unlock()
		if len(q) > 0 {
			return q[0], nil
		}
		if err := guard.Err(); err != nil {
			return t, err
		}
		if closed {
			return t, fifo.ErrClosed
		}
		select {
		case <-changed:
		case <-tick.C:
		}
	}
}

// Close makes Put and Take fail and returns what was never taken.
func (a *Arrivals[T]) Close() (left []T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	for _, q := range a.arrived {
		left = append(left, q...)
	}
	clear(a.arrived)
	a.announce()
	return left
}
