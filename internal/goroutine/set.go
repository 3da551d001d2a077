// Package goroutine tells goroutines apart, so that a call which would wait for its own caller is an error.
package goroutine

import (
	"sync"
	"sync/atomic"
)

// A Set is the goroutines that are inside of some functions. Its zero value is empty, and a nil Set stays so.
type Set struct {
	n  atomic.Int32 // goroutines, so that an empty Set costs little
	mu sync.Mutex
	in map[uintptr]int // by ID: how deep
}

// Run calls f, inside of which the goroutine is in the Set.
func (s *Set) Run(f func()) {
	if s == nil {
		f()
		return
	}
	s.add(1)
	defer s.add(-1)
	f()
}

func (s *Set) add(n int) {
	me := ID()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in == nil {
		s.in = map[uintptr]int{}
	}
	if s.in[me] += n; s.in[me] == 0 {
		delete(s.in, me)
	}
	s.n.Add(int32(n))
}

// Has reports whether the calling goroutine is in the Set.
func (s *Set) Has() bool {
	if s == nil || s.n.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in[ID()] > 0
}
