package ringo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// DoContext is Do that ends when ctx does. A deadline of ctx bounds the waits of the call as
// Call.Timeout does, and passes for all ranks with the error that says who was waited for; it holds also
// while the call waits behind others of this rank, and ends these too. A
// cancellation aborts the communicator on all ranks. On GPU memory it bounds the queueing alone. If
// ctx has ended before, nothing is done on this rank.
func (c *Comm) DoContext(ctx context.Context, call *Call) error {
	if ctx.Err() != nil {
		return c.life.Locate(call, 0, fmt.Errorf("nothing was done: %w", context.Cause(ctx)), nil)
	}
	if err := c.check(call); err != nil {
		return c.life.Locate(call, 0, err, nil)
	}
	var l *limit
	if end, ok := ctx.Deadline(); ok {
		l = &limit{end: end, passed: make(chan error, 1)}
		timer := time.AfterFunc(time.Until(end), func() {
			if l.begun.CompareAndSwap(false, true) {
				l.passed <- c.life.FailIn(call.Kind.String(), fmt.Errorf("%w before the call's turn came: what this rank has begun before is still under way", ErrTimeout))
			}
		})
		defer timer.Stop()
	}
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // else the call finds out whom it has waited for
			c.Abort(context.Cause(ctx))
		}
	})
	defer stop()
	c.queue.drain()
	bounded := *call
	return c.carryOut(&bounded, l)
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
