package ringo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// With returns c bound to ctx: Do, Start and the functions on slices of the result are as DoContext, so they end when
// ctx does. c itself is not bound, and is the one to close. In a Group the two are the same communicator.
//
//	err := ringo.AllReduce(c.With(ctx), data, ringo.Sum)
func (c *Comm) With(ctx context.Context) *Comm {
	if c == nil {
		return nil
	}
	return &Comm{membership: c.membership, ctx: ctx}
}

// DoContext is Do, but ends when ctx does. A deadline of ctx bounds the waits of the call as Call.Timeout does: when it
// passes, the communicator fails on all ranks, with an error that names the rank waited for. The deadline counts also
// while the call waits behind other calls of this rank, and ends those too. A cancellation aborts the communicator on
// all ranks. On GPU memory ctx bounds the queueing alone. If ctx has ended before the call, this rank does nothing.
func (c *Comm) DoContext(ctx context.Context, call *Call) error {
	if err := c.absent("DoContext"); err != nil {
		return err
	}
	err := c.over(ctx)
	if err == nil {
		err = c.check(call)
	}
	if err != nil {
		return c.life.Locate(call, 0, err, nil)
	}
	return c.doBehind(ctx, call)
}

// doBehind does a checked call behind all that this rank has begun. The call ends when ctx does, or after its Timeout.
func (c *Comm) doBehind(ctx context.Context, call *Call) error {
	l, release := c.bound(ctx, call)
	defer release()
	bounded := *call
	if err := c.lock(l.ctx); err != nil {
		return c.life.Told(c.missed(&bounded, l, err))
	}
	if err := l.begin(&bounded); err != nil {
		c.life.Turn.Unlock()
		return err
	}
	return c.life.Told(c.carryOn(&bounded))
}

// over returns the error of a call whose ctx has ended.
func (c *Comm) over(ctx context.Context) error {
	if ctx == nil || ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("nothing was done: %w", context.Cause(ctx))
}

// bound makes a call end when ctx does or its Timeout has passed: at the limit l, or by an abort of the communicator.
// The caller calls release when the call has ended.
func (c *Comm) bound(ctx context.Context, call *Call) (l *limit, release func()) {
	cancel := func() {}
	if call.Timeout > 0 && !call.OnDevice() {
		ctx, cancel = context.WithTimeout(ctx, call.Timeout)
	}
	name := call.Kind.String()
	l = &limit{ctx: ctx, miss: sync.OnceValue(func() error {
		return c.life.FailIn(name,
			fmt.Errorf("%w before the call's turn came: what this rank has begun before is still under way", ErrTimeout))
	})}
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.Abort(context.Cause(ctx))
		} else if l.begun.CompareAndSwap(false, true) { // else the call finds out whom it has waited for
			l.miss()
		}
	})
	return l, func() {
		stop()
		cancel()
	}
}

// missed is the error of a call whose turn did not come.
func (c *Comm) missed(call *Call, l *limit, err error) error {
	switch {
	case l.ctx.Err() == nil: // see Turn.Inside
		return c.life.Locate(call, 0, err, nil)
	case errors.Is(l.ctx.Err(), context.DeadlineExceeded):
		l.begun.Store(true)
		return l.miss()
	}
	c.Abort(context.Cause(l.ctx))
	return c.life.Begin(call, nil)
}

// A limit is the time until which a call, and the calls that it waits behind, may take.
type limit struct {
	ctx   context.Context
	begun atomic.Bool  // the call has its turn, or the limit has passed before
	miss  func() error // ends the communicator, since the limit has passed before
}

// begin makes the waits of a call, whose turn has come, end at the limit.
func (l *limit) begin(call *Call) error {
	if !l.begun.CompareAndSwap(false, true) {
		return l.miss()
	}
	if end, ok := l.ctx.Deadline(); ok {
		call.Timeout = max(time.Until(end), 1)
	}
	return nil
}
