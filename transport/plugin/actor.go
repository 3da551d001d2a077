package plugin

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// An actor is the only goroutine that calls the plugin for one purpose: for a library; to set a connection up and to
// close it; in between, to carry the data of all connections of a communicator. The goroutine ends when there is
// nothing to do, so an actor at rest costs nothing. All others wait for the actor with a limit: if the plugin blocks
// where it must not, the actor's goroutine and the memory it was given are lost, and nobody else hangs.
type actor struct {
	work  func() (again bool) // called when the actor was asked, and again while it returns true; nil for none
	state atomic.Int32
	once  sync.Once
	body  func() // run, so that go allocates nothing

	mu   sync.Mutex
	todo []func() // under mu
}

// States of an actor.
const (
	resting int32 = iota
	running
	asked // running, and will call work once more before it rests
)

// ask has the actor call work and carry out what was posted.
func (a *actor) ask() {
	if a.state.Load() != asked && a.state.Swap(asked) == resting {
		a.once.Do(func() { a.body = a.run })
		go a.body()
	}
}

func (a *actor) run() {
	for {
		a.state.Store(running) // an ask from here on leads to another turn of the loop
		a.carryOut()
		if a.work != nil && a.work() {
			continue
		}
		if a.state.CompareAndSwap(running, resting) {
			return
		}
	}
}

// carryOut does what was posted.
func (a *actor) carryOut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.todo) > 0 {
		f := a.todo[0]
		a.todo = a.todo[1:]
		a.mu.Unlock()
		f()
		a.mu.Lock()
	}
}

// post has the actor carry out f, after what was posted before.
func (a *actor) post(f func()) {
	a.mu.Lock()
	a.todo = append(a.todo, f)
	a.mu.Unlock()
	a.ask()
}

// grace is how long a call that has begun may go on when its time is over: it takes a moment only, unless the
// plugin blocks.
const grace = 50 * time.Millisecond

// do has the actor carry out f, and waits for f until ctx ends. After that f may still be carried out, later or
// never: a function that is posted next has to undo its effects.
func (a *actor) do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	a.post(func() { done <- f() })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return fmt.Errorf("the plugin has not returned from its function: %w", context.Cause(ctx))
	}
}
