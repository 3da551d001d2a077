package ringo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// With is c for operations that end when ctx does: the functions on slices of it, Do and Start are DoContext. c
// itself stays as it is, and is what is closed. In a Group both are the same.
//
//	err := ringo.AllReduce(c.With(ctx), data, ringo.Sum)
func (c *Comm) With(ctx context.Context) *Comm { return &Comm{membership: c.membership, ctx: ctx} }

// DoContext is Do that ends when ctx does. A deadline of ctx bounds the waits of the call as
// Call.Timeout does, and passes for all ranks with the error that says who was waited for; it holds also
// while the call waits behind others of this rank, and ends these too. A
// cancellation aborts the communicator on all ranks. On GPU memory it bounds the queueing alone. If
// ctx has ended before, nothing is done on this rank.
func (c *Comm) DoContext(ctx context.Context, call *Call) error {
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
	return c.carryOut(&bounded, l)
}

// over says that ctx has ended.
func (c *Comm) over(ctx context.Context) error {
	if ctx == nil || ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("nothing was done: %w", context.Cause(ctx))
}

// bound has a call end when ctx does: by a limit, nil if ctx has no deadline, or because the communicator is aborted.
// release is to be called when it has ended.
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

// A limit is until when a call and what it waits behind may take.
type limit struct {
	end    time.Time
	begun  atomic.Bool // the call has its turn, or the limit has passed before
	passed chan error  // why the call does not begin
}

// begin has the waits of a call end with the limit. The call has its turn.
func (l *limit) begin(call *Call) error {
	if !l.begun.CompareAndSwap(false, true) {
		return <-l.passed
	}
	if left := max(time.Until(l.end), 1); call.Timeout == 0 || left < call.Timeout {
		call.Timeout = left
	}
	return nil
}
