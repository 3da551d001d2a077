package life

import (
	"sync"
	"time"
)

// endings are the functions of OnEnd.
type endings struct {
	mu   sync.Mutex
	of   []func()      // guarded by mu
	done chan struct{} // guarded by mu; closed when all have returned, nil until the communicator has failed
}

// OnEnd has f called, once, on a goroutine that Close waits for, when it is known why the
// communicator has failed. An operation's error waits for f too, at most noteTime: a program may exit on
// it. f must carry out no operation.
func (e *endings) OnEnd(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of = append(e.of, f)
}

// noteTime is how long an error waits for the functions of OnEnd: a folder that does not answer must not hang the
// program.
const noteTime = 2 * time.Second

// begin reports whether the communicator is the first time said to have failed; run follows then.
func (e *endings) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := e.done == nil
	if first {
		e.done = make(chan struct{})
	}
	return first
}

// run calls the functions.
func (e *endings) run() {
	e.mu.Lock()
	of, done := e.of, e.done
	e.mu.Unlock()
	for _, f := range of {
		f()
	}
	close(done)
}

// wait returns when the functions have returned, after noteTime at most, and at once unless the communicator has
// failed.
func (e *endings) wait() {
	e.mu.Lock()
	done := e.done
	e.mu.Unlock()
	if done == nil {
		return
	}
	timer := time.NewTimer(noteTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
