package capi

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo"
)

// Finalize waits for what was begun. The communicator takes no calls any more. As in NCCL the null handle
// is no error, and none of Destroy and Abort.
func (l *Library) Finalize(group, handle uintptr) (err error) {
	if handle == 0 {
		return nil
	}
	defer func() { l.Fail(group, err) }()
	c, _, err := l.ready(handle)
	if err != nil {
		return err
	}
	return l.job(group, job{c, nil, func() (*ringo.Comm, error) {
		c.mu.Lock()
		c.finalized = true
		c.usable.Store(nil)
		last := c.started
		c.mu.Unlock()
		if last != nil {
			return nil, last.Wait()
		}
		return nil, nil
	}})
}

// Destroy ends a communicator, and its handle. It waits for what this rank has begun, and for no other
// rank: one that is still being opened is given up.
func (l *Library) Destroy(handle uintptr) error { return l.end(handle, nil) }

// Abort is Destroy that ends what is under way, on all ranks, instead of waiting for it. Where
// nothing is, it is Destroy: programs that are done abort, and others may still be at work.
func (l *Library) Abort(handle uintptr) error { return l.end(handle, errors.New("ncclCommAbort")) }

// idle is how long Abort gives a communicator to end by itself, which one with nothing under way does,
// and leaving how long it waits then for what other ranks may hold up, the end of memory that they
// have open. That goes on in the background.
const (
	idle    = 200 * time.Millisecond
	leaving = time.Second
)

// end ends a communicator; a reason aborts what is under way.
func (l *Library) end(handle uintptr, reason error) error {
	if handle == 0 {
		return nil
	}
	c, err := l.comms.take(handle)
	if err != nil {
		return err
	}
	defer c.cancel()
	if reason == nil {
		if c.opened() == nil { // it would wait for ranks that may never come
			c.cancel()
		}
		err := l.close(c)
		c.say(c.opened(), "Destroy")
		return err
	}
	c.cancel()
	done := make(chan error, 1)
	go func() { done <- l.close(c) }()
	select {
	case err = <-done:
	case <-time.After(idle):
		if r := c.opened(); r != nil {
			c.abort(r, reason)
		}
		select {
		case err = <-done:
		case <-time.After(leaving):
		}
	}
	c.say(c.opened(), "Abort")
	l.Note(err) // what was aborted has failed, and that is no error of Abort
	return nil
}

// abort ends what is under way, on all ranks.
func (c *comm) abort(r *ringo.Comm, reason error) {
	r.Abort(reason)
	if p, err := c.hostPost(); err == nil {
		_ = p.close(reason, true)
	}
}

// close gives back what a communicator has. Why it failed was said before.
func (l *Library) close(c *comm) (err error) {
	defer caught(&err)
	c.jobs.Wait()
	r := c.opened()
	if r == nil {
		return nil
	}
	well := r.Err() == nil
	if p, none := c.hostPost(); none == nil {
		err = p.close(ringo.ErrClosed, false)
	}
	err = errors.Join(err, r.Close(), l.release(c))
	if !well {
		return nil
	}
	return err
}

// Revoke ends what is under way, on all ranks, and leaves a communicator that can only be
// destroyed.
func (l *Library) Revoke(handle uintptr, flags int) error {
	if flags != 0 {
		return fmt.Errorf("%w: ncclCommRevoke has no flags but NCCL_REVOKE_DEFAULT, not %d", ringo.ErrInvalid, flags)
	}
	c, r, err := l.known(handle)
	if err != nil {
		return err
	}
	c.abort(r, errors.New("ncclCommRevoke"))
	c.mu.Lock()
	c.revoked = true
	c.mu.Unlock()
	return nil
}
