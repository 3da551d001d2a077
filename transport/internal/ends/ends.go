// Package ends keeps the open connections of a transport and its goroutines, all of which the
// transport's Close ends: it calls Shut, closes the listener and the like, and calls Close and
// Wait of the Set. The trap: an end that Keep refuses is the caller's to close.
package ends

import (
	"cmp"
	"errors"
	"sync"
	"time"
)

// An End is one end of a connection.
type End interface {
	comparable
	Close() error
}

// A Set is the open ends of one transport, and goroutines that its Close waits for.
type Set[E End] struct {
	linger time.Duration // transport.Config.Linger, 0 if not set

	away chan struct{}
	done chan struct{}
	work sync.WaitGroup

	mu      sync.Mutex
	open    map[E]struct{}
	shut    bool
	waiting bool // Wait has begun
	lost    []error
}

// New is an empty Set. linger is transport.Config.Linger.
func New[E End](linger time.Duration) *Set[E] {
	return &Set[E]{linger: linger, away: make(chan struct{}), done: make(chan struct{}), open: make(map[E]struct{})}
}

// Keep remembers an end until it is forgotten or closed by Close. It returns false after Shut.
func (s *Set[E]) Keep(e E) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shut {
		s.open[e] = struct{}{}
	}
	return !s.shut
}

// Forget is for an end that was closed.
func (s *Set[E]) Forget(e E) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, e)
}

// Append appends the open ends to list.
func (s *Set[E]) Append(list []E) []E {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := range s.open {
		list = append(list, e)
	}
	return list
}

// Go runs f in a goroutine for which Wait waits. It returns false, and does not run f, if Wait has
// already waited for goroutines.
func (s *Set[E]) Go(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting {
		return false
	}
	s.work.Go(f)
	return true
}

// Enter makes Wait wait until Leave is called. It returns false after Shut.
func (s *Set[E]) Enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return false
	}
	s.work.Add(1)
	return true
}

// Leave ends what Enter began.
func (s *Set[E]) Leave() { s.work.Done() }

// Away is closed by Shut.
func (s *Set[E]) Away() <-chan struct{} { return s.away }

// Closed reports whether Shut was called.
func (s *Set[E]) Closed() bool {
	select {
	case <-s.away:
		return true
	default:
		return false
	}
}

// Shut begins a Close: no more ends are kept. The first caller gets true; later ones get false when
// the first one's Wait has returned.
func (s *Set[E]) Shut() bool {
	s.mu.Lock()
	first := !s.shut
	if first {
		s.shut = true
		close(s.away)
	}
	s.mu.Unlock()
	if !first {
		<-s.done
	}
	return first
}

// Close closes all ends, whose errors are of no interest: they are gone either way.
func (s *Set[E]) Close() {
	s.mu.Lock()
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for e := range open {
		_ = e.Close()
	}
}

// Wait waits for the goroutines; no more can be started after it.
func (s *Set[E]) Wait() {
	s.mu.Lock()
	s.waiting = true
	s.mu.Unlock()
	s.work.Wait()
	close(s.done)
}

// Linger is how long a closed sending end waits, in the background, for a peer that takes nothing.
func (s *Set[E]) Linger() time.Duration { return cmp.Or(s.linger, LingerTime) }

// Lose notes the slots that a closed sending end could not deliver within Config.Linger. Without Config.Linger the end
// has waited for LingerTime, and nobody is told.
func (s *Set[E]) Lose(err error) {
	if s.linger > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lost = append(s.lost, err)
	}
}

// Lost is what Lose has noted, nil if nothing.
func (s *Set[E]) Lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.lost...)
}

// LingerTime is how long a closed sending end waits, in the background, for a peer that takes none
// of the published slots, unless Config.Linger is set.
const LingerTime = time.Second

// Linger asks, after each pause, how many slots are left. It returns when none is, when over returns true, or when
// the peer has taken none for limit; late is how many are left in that case, else 0.
func Linger(pause, limit time.Duration, ask func() (left int, over bool)) (late int) {
	left, over := ask()
	for last := time.Now(); left > 0 && !over && time.Since(last) < limit; {
		time.Sleep(pause)
		var n int
		if n, over = ask(); n != left {
			left, last = n, time.Now()
		}
	}
	if over {
		return 0
	}
	return left
}
