// Package lobby is where connections that peers have dialled wait until they
// are accepted.
package lobby

import (
	"sync"
	"time"

	"github.com/ringo-go/ringo/fifo"
)

// A Lobby holds things of type T that arrived for a rank, first come first
// served. All methods may be called from any goroutine.
type Lobby[T any] struct {
	mu      sync.Mutex
	arrived map[int][]T
	changed chan struct{} // closed and replaced at each arrival
	closed  bool
}

// New is an empty Lobby.
func New[T any]() *Lobby[T] {
	return &Lobby[T]{arrived: make(map[int][]T), changed: make(chan struct{})}
}

// Put adds what came from rank. It reports false if the Lobby is closed; then
// the caller still owns it.
func (l *Lobby[T]) Put(rank int, t T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.arrived[rank] = append(l.arrived[rank], t)
	l.announce()
	return true
}

func (l *Lobby[T]) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// patience is how often a wait looks at its Guard.
const patience = 20 * time.Millisecond

// Take waits for something from rank. Errors: the Guard has ended, or
// fifo.ErrClosed.
func (l *Lobby[T]) Take(rank int, guard *fifo.Guard) (t T, err error) {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for {
		l.mu.Lock()
		q, closed, changed := l.arrived[rank], l.closed, l.changed
		if len(q) > 0 {
			l.arrived[rank] = q[1:]
		}
		l.mu.Unlock()
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
func (l *Lobby[T]) Close() (left []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	for _, q := range l.arrived {
		left = append(left, q...)
	}
	clear(l.arrived)
	l.announce()
	return left
}
