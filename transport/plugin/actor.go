package plugin

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// An actor is the goroutine that alone calls the plugin for something: for a library; to set a connection up and to
// close it; in between, to carry the data of all connections of a communicator. The goroutine is there while there is
// something to do, so that an actor at rest costs nothing. Everyone else waits for the actor with a limit: a plugin may
// block where it may not, and then the goroutine is lost with what it was given, and nobody else.
type actor struct {
	work  func() (again bool) // is called whenever the actor was asked, until it is false; nil for none
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
	asked // running, and to look once more before it rests
)

// ask has the actor look for what there is to do.
func (a *actor) ask() {
	if a.state.Load() != asked && a.state.Swap(asked) == resting {
		a.once.Do(func() { a.body = a.run })
		go a.body()
	}
}

func (a *actor) run() {
	for {
		a.state.Store(running) // what is asked for from here on is not missed
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

// do has the actor carry out f, and waits for it until ctx ends. Then f is carried out all the same, later or
// never: what it leaves is for what is posted next to undo.
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
