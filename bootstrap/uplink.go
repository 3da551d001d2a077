package bootstrap

import (
	"context"
	"sync"
	"time"
)

// An uplink is a member's way to the coordinator, in this process (Local) or in the hub's.
type uplink struct {
	order  sync.Mutex    // held while calling up, so that messages go up in order
	up     func(message) // to the coordinator; does not block
	drop   func()        // ends the connection without goodbye
	flush  func()        // waits a moment until all messages sent up are on their way
	hangUp func()        // ends the connection and all its goroutines, after bye
	quits  func()        // another member of this process may have its rank from now on

	open  context.Context // ended by Leave and Close
	leave context.CancelFunc
	ended chan struct{} // closed when the way to the coordinator has ended
	byed  chan struct{} // closed when the coordinator has answered this rank's goodbye, or cannot
	end   func()        // closes ended and byed
	bye   func()        // closes byed
}

func (u *uplink) init() {
	nothing := func() {}
	u.drop, u.flush, u.hangUp, u.quits = nothing, nothing, nothing, nothing
	u.open, u.leave = context.WithCancel(context.Background())
	u.ended, u.byed = make(chan struct{}), make(chan struct{})
	u.bye = sync.OnceFunc(func() { close(u.byed) })
	u.end = sync.OnceFunc(func() {
		close(u.ended)
		u.bye()
	})
}

// closed reports whether Leave or Close was called.
func (u *uplink) closed() bool { return u.open.Err() != nil }

// awaitBye waits for the answer to this rank's goodbye.
func (u *uplink) awaitBye() {
	select {
	case <-u.byed:
	case <-time.After(goodbyeTime):
	}
}

// send sends the coordinator a message, in order.
func (u *uplink) send(m message) {
	u.order.Lock()
	defer u.order.Unlock()
	u.up(m)
}

// say sends the coordinator a message, unless the goodbye was sent.
func (u *uplink) say(m message) {
	u.order.Lock()
	defer u.order.Unlock()
	if !u.closed() {
		u.up(m)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
