package ringo

import (
	"context"
	"errors"
	"fmt"
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
	l, release := c.bound(ctx, call)
	defer release()
	c.queue.drain()
	bounded := *call
	return c.life.Told(c.carryOut(&bounded, l))
}

// over returns the error of a call whose ctx has ended.
func (c *Comm) over(ctx context.Context) error {
	if ctx == nil || ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("nothing was done: %w", context.Cause(ctx))
}

// bound makes a call end when ctx does: at the limit l, which is nil if ctx has no deadline, or by an abort of the
// communicator. The caller calls release when the call has ended.
func (c *Comm) bound(ctx context.Context, call *Call) (l *limit, release func()) {
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // else the call finds out whom it has waited for
			c.Abort(context.Cause(ctx))
		}
	})
	end, ok := ctx.Deadline()
	if !ok {
		return nil, func() { stop() }
	}
	l, name := &limit{end: end, passed: make(chan error, 1)}, call.Kind.String()
	timer := time.AfterFunc(time.Until(end), func() {
		if l.begun.CompareAndSwap(false, true) {
			l.passed <- c.life.FailIn(name,
				fmt.Errorf("%w before the call's turn came: what this rank has begun before is still under way", ErrTimeout))
		}
	})
	return l, func() {
		timer.Stop()
		stop()
	}
}

// A limit is the time until which a call, and the calls that it waits behind, may take.
type limit struct {
	end    time.Time
	begun  atomic.Bool // the call has its turn, or the limit has passed before
	passed chan error  // why the call does not begin
}

// begin makes the waits of a call, whose turn has come, end at the limit.
func (l *limit) begin(call *Call) error {
	if !l.begun.CompareAndSwap(false, true) {
		return <-l.passed
	}
	if left := max(time.Until(l.end), 1); call.Timeout == 0 || left < call.Timeout {
		call.Timeout = left
	}
	return nil
}
