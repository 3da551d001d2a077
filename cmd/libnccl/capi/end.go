package capi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// Finalize waits for all operations that were begun, on the GPU too. The communicator takes no calls any more. As in
// NCCL, Finalize, Destroy and Abort of the null handle do nothing.
func (l *Library) Finalize(group, handle uintptr) (err error) {
	if handle == 0 {
		return nil
	}
	defer func() { l.Fail(group, err) }()
	c, r, err := l.ready(handle)
	if err == errRevoked {
		return fmt.Errorf("%w: ncclCommFinalize: the communicator was revoked: ncclCommDestroy ends it", ringo.ErrInvalid)
	}
	if err != nil {
		return err
	}
	return l.job(group, job{c, nil, func() (*ringo.Comm, error) {
		var last *ringo.Pending
		_ = c.change(func(s *state) error {
			s.barred, last = errFinalized, c.started
			return nil
		})
		if last != nil {
			if err := last.Wait(); err != nil {
				return nil, err
			}
		}
		return nil, r.Drain()
	}})
}

// Destroy ends a communicator and its handle, after this rank's operations. If other ranks have windows of this
// one open, Destroy waits until they have closed them, as the program may free the memory afterwards. Otherwise
// memory that other ranks may still need is given back in the background, for which Exit waits. A communicator
// that is still being opened is given up. The error is why the communicator has failed, if the program was never given
// that.
func (l *Library) Destroy(handle uintptr) error { return l.end(handle, nil) }

// Abort is Destroy that ends operations under way, on all ranks, instead of waiting for them. With
// none under way Abort is Destroy: programs that are done abort, while other ranks may still be at work.
func (l *Library) Abort(handle uintptr) error { return l.end(handle, errAbort) }

// idle is how long Abort lets a communicator end by itself, as one with nothing under way does, and how long
// Destroy lets the other ranks leave. leaving is how long Abort then waits until other ranks have closed this
// rank's memory; after that the closing goes on in the background.
const (
	idle    = 200 * time.Millisecond
	leaving = time.Second
)

// exitTime bounds Exit. Ranks wait 10 s for each other.
const exitTime = 15 * time.Second

// Exit tells the other ranks that this process leaves all communicators that it has not ended, and waits until every
// communicator has given everything back. It is for the end of the process: without it, other ranks would take the
// leaving rank for a dead one. Operations under way are aborted. Handles stay valid, since destructors may yet
// end them.
func (l *Library) Exit() {
	if l.exiting.Swap(true) {
		return
	}
	for _, g := range l.groups.all() {
		l.complain(g.unended())
	}
	bootstrap.Exit()
	left := make(chan struct{})
	go func() {
		var open sync.WaitGroup
		for _, c := range l.comms.all() {
			open.Go(func() { l.abort(c, errors.New("the process ended")) })
		}
		open.Wait()
		l.closing.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-time.After(exitTime):
	}
}

// end ends a communicator; a reason aborts what is under way.
func (l *Library) end(handle uintptr, reason error) error {
	if handle == 0 {
		return nil
	}
	c, err := l.comms.Take(handle)
	if err != nil {
		return err
	}
	defer c.cancel()
	if reason == nil {
		var failed error
		if c.opened() == nil { // opening would wait for ranks that may never come
			failed = c.background()
			c.cancel()
		}
		l.startClose(c)
		err := cmp.Or(c.left(), failed)
		c.say(c.opened(), "Destroy")
		return err
	}
	l.abort(c, reason)
	c.say(c.opened(), "Abort")
	return nil
}

// abort closes a communicator, and ends what is under way.
func (l *Library) abort(c *comm, reason error) {
	c.cancel()
	l.startClose(c)
	select {
	case <-c.gone:
	case <-time.After(idle):
		if r := c.opened(); r != nil {
			c.abort(r, reason)
		}
		select {
		case <-c.gone:
		case <-time.After(leaving):
			return
		}
	}
	l.Note(c.lost) // operations that were aborted have failed, which is no error of Abort
}

// startClose closes a communicator in the background, once.
func (l *Library) startClose(c *comm) {
	if c.change((*state).close) != nil { // another thread has closed it
		return
	}
	l.mu.Lock()
	l.ending = append(l.ending, c)
	l.mu.Unlock()
	l.closing.Go(func() {
		c.lost = l.close(c)
		c.lease.End()
		l.mu.Lock()
		l.ending = slices.DeleteFunc(l.ending, func(o *comm) bool { return o == c })
		l.mu.Unlock()
		close(c.gone)
	})
}

// left waits until this rank has left a communicator that is being closed.
func (c *comm) left() error {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	windows := c.hasWindows()
	var others <-chan time.Time // nil while this rank's own work goes on
	for {
		select {
		case <-c.gone:
			return c.lost
		case <-others:
			return nil
		case <-look.C:
			if r := c.opened(); others == nil && !windows && r != nil && errors.Is(r.Failure(), ringo.ErrClosed) {
				others = time.After(idle)
			}
		}
	}
}

// hasWindows reports whether peers may have windows of the communicator open.
func (c *comm) hasWindows() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.windows, func(w *window) bool { return w != nil && w.ring != nil })
}

// abort ends what is under way, on all ranks.
func (c *comm) abort(r *ringo.Comm, reason error) {
	c.quits.Store(true)
	r.Abort(reason)
	if p, err := c.hostPost(); err == nil {
		_ = p.close(reason, true)
	}
}

// close gives back all that a communicator holds. The error is why the communicator has failed, if the program was
// never given that. What goes wrong with giving back then is not said.
func (l *Library) close(c *comm) (err error) {
	defer caught(&err)
	<-c.quiet
	r := c.opened()
	if r == nil {
		return nil
	}
	well := r.Failure() == nil
	if p, none := c.hostPost(); none == nil {
		err = p.close(ringo.ErrClosed, false)
	}
	background := c.background()
	closed := r.Close()
	err = errors.Join(err, closed, l.release(c))
	if failure := r.Failure(); errors.Is(closed, failure) {
		background = failure
	}
	if background != nil {
		l.failed(c, background)
		return background
	}
	if !well {
		return nil
	}
	return err
}

// Revoke ends operations under way, on all ranks. Afterwards the communicator takes no calls, but others can be made
// from it by Split, Shrink and Grow.
func (l *Library) Revoke(handle uintptr, flags int) error {
	if handle == 0 {
		return nil
	}
	if flags != 0 {
		return fmt.Errorf("%w: ncclCommRevoke has no flags but NCCL_REVOKE_DEFAULT, not %d", ringo.ErrInvalid, flags)
	}
	c, r, err := l.known(handle)
	if err != nil {
		return err
	}
	if err := c.change((*state).revoke); err != nil {
		return err
	}
	c.abort(r, errRevoke)
	return nil
}
