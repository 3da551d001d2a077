// Package listen is the common part of the transports with sockets (shm, socket): how a rank dials and proves itself,
// how a listener answers, which all transports of a process share (Door), and where connections wait until they are
// accepted. The trap: a caller is a stranger until Answer returns nil.
package listen

import (
	"fmt"
	"sync"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

// Arrivals holds values of type T that arrived from each rank, in order of arrival.
// All methods may be called from any goroutine.
type Arrivals[T any] struct {
	mu      sync.Mutex
	arrived map[int][]T
	changed chan struct{} // closed and replaced at each arrival
	closed  bool
	left    func(rank int) bool // see transport.Config
}

// NewArrivals is an empty Arrivals. left reports whether a rank has left; nil means that nobody has.
func NewArrivals[T any](left func(rank int) bool) *Arrivals[T] {
	if left == nil {
		left = func(int) bool { return false }
	}
	return &Arrivals[T]{arrived: make(map[int][]T), changed: make(chan struct{}), left: left}
}

// Put adds a value that came from rank. It returns false if the Arrivals is closed;
// then the caller still owns the value.
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

// lastLooks is how often a wait looks for a value from a rank that has left: a goroutine of this
// process may be about to Put a value that the rank sent before. Looks are counted instead of
// time, since this process may be stopped for any time.
const lastLooks = 25

// Take waits for a value from rank. Errors: the Guard's, or fifo.ErrClosed, also where rank has left
// and no value from it is here.
func (a *Arrivals[T]) Take(rank int, guard *fifo.Guard) (t T, err error) {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for looks := 0; ; {
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
			if looks > 0 || a.left(rank) {
				looks++
			}
			if looks > lastLooks {
				return t, fmt.Errorf("rank %d has left and never sent anything: %w", rank, fifo.ErrClosed)
			}
		}
	}
}

// Close makes Put and Take fail and returns the values that were never taken.
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
