package ringo

import (
	"context"
	"errors"
	"fmt"
	tracer "runtime/trace"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/life"
)

// Do carries out a call and returns when this rank's part is done: its result
// is complete and its memory is the caller's again. On a GPU it returns when the
// call is queued on its stream; see Synchronize. It allocates nothing after the
// first call of a kind. An error is an *Error; one that wraps ErrInvalid or
// ErrUnsupported leaves the communicator usable, any other ends it on all ranks.
func (c *Comm) Do(call *Call) error {
	if err := c.absent("Do"); err != nil {
		return err
	}
	if c.ctx != nil {
		return c.DoContext(c.ctx, call)
	}
	if err := c.check(call); err != nil {
		return c.life.Locate(call, 0, err, nil)
	}
	busy := c.queue.busy()
	switch {
	case !busy && c.life.Turn.TryLock():
		return c.life.Told(c.carryOn(call))
	case call.Timeout > 0:
		return c.doBehind(context.Background(), call)
	case busy && !call.OnThread() && !c.captures(call):
		started := *call
		return c.start(newPending(c.life, &started)).Wait()
	}
	if err := c.take(nil, call, true); err != nil {
		return c.life.Told(err)
	}
	return c.life.Told(c.carryOn(call))
}

// doBehind does a checked call behind all that this rank has begun. The call ends when ctx does, or after its Timeout.
func (c *Comm) doBehind(ctx context.Context, call *Call) error {
	bounded := *call
	l := newLimit(ctx, c.life, &bounded)
	defer l.release()
	if err := c.take(l, &bounded, true); err != nil {
		return c.life.Told(err)
	}
	return c.life.Told(c.carryOn(&bounded))
}

// take takes the turn for a checked call, behind those that were started or by their carrier. l is nil for no limit.
func (c *Comm) take(l *limit, call *Call, behind bool) (err error) {
	ctx := context.Background()
	if l != nil {
		ctx = l.ctx
	}
	if behind {
		err = c.lock(ctx)
	} else {
		err = c.life.Turn.Lock(ctx)
	}
	switch {
	case l == nil && err != nil:
		return c.life.Locate(call, 0, err, nil)
	case l == nil:
		return nil
	case err != nil:
		return l.missed(call, err)
	}
	if err = l.begin(call); err != nil {
		c.life.Turn.Unlock()
	}
	return err
}

// lock takes the turn, behind all that this rank has begun.
func (c *Comm) lock(ctx context.Context) error {
	err := c.life.Turn.Inside()
	if err == nil {
		err = c.queue.drain(ctx)
	}
	if err == nil {
		err = c.life.Turn.Lock(ctx)
	}
	return err
}

// inTurn calls f in this rank's turn, behind all that it has begun. If ctx ends before, inTurn returns at once and f is
// called later: the other ranks make that call too, so it keeps its place.
func (c *Comm) inTurn(ctx context.Context, f func() error) error {
	if !c.queue.busy() {
		return c.life.Turn.Keep(ctx, f)
	}
	p := newPending(c.life, nil)
	p.begun, p.method = make(chan struct{}), f
	c.start(p)
	select {
	case <-p.begun:
	case <-p.done:
	case <-ctx.Done():
		return life.Behind(ctx)
	}
	return p.Wait()
}

// Start begins a call and returns at once; calls are carried out in the order
// they were started. When as many are waiting as the queue holds (1024), Start
// waits for space. While the call's stream is being captured, Start carries the
// call out itself, after those that were started before: it is part of the graph.
func (c *Comm) Start(call *Call) *Pending {
	if err := c.absent("Start"); err != nil {
		p := newPending(nil, call)
		p.finish(err)
		return p
	}
	err := c.over(c.ctx)
	if err == nil {
		err = c.check(call)
	}
	if err == nil && call.OnThread() {
		err = fmt.Errorf("%w: the per-thread stream is this thread's, and what is started is queued by another: "+
			"use Do, or a stream of your own", ErrInvalid)
	}
	if err != nil {
		p := newPending(c.life, call)
		p.finish(c.life.Locate(call, 0, err, nil))
		return p
	}
	if c.captures(call) { // part of the graph only if queued before the capture ends
		p := newPending(c.life, call)
		if err = c.take(nil, call, true); err == nil {
			err = c.carryOn(call)
		}
		p.finish(err)
		return p
	}
	if c.ctx == nil && call.Timeout == 0 {
		return c.start(newPending(c.life, call))
	}
	bounded := *call
	p := newPending(c.life, &bounded)
	ctx := c.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	p.limit = newLimit(ctx, c.life, call)
	return c.start(p)
}

// start puts a checked call in the queue.
func (c *Comm) start(p *Pending) *Pending {
	err := c.life.Turn.Inside()
	if err == nil {
		err = c.queue.start(p)
	}
	if err != nil && p.call != nil {
		err = c.life.Locate(p.call, 0, err, nil)
	}
	if err != nil {
		p.finish(err)
	}
	return p
}

// check finds what is wrong with a call that is in no Group.
func (c *Comm) check(x *Call) error {
	err := x.Check(c.life.Rank, c.life.Size)
	if err == nil && x.Kind.Pairwise() && x.Peer == c.life.Rank {
		err = call.CheckSelf([]*Call{x}, c.life.Rank)
	}
	return err
}

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

// over returns the error of a call whose ctx has ended.
func (c *Comm) over(ctx context.Context) error {
	if ctx == nil || ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("nothing was done: %w", context.Cause(ctx))
}

// captures reports whether a call's stream is being captured.
func (c *Comm) captures(call *Call) bool {
	return c.onGPU() && call.OnDevice() && c.gpu.Capturing(call.Stream)
}

// carryOut carries out what was started when its turn comes.
func (c *Comm) carryOut(p *Pending) error {
	if p.method != nil {
		return c.life.Turn.Keep(context.Background(), func() error {
			close(p.begun)
			return p.method()
		})
	}
	if err := c.take(p.limit, p.call, false); err != nil {
		return err
	}
	return c.carryOn(p.call)
}

// carryOn does a checked call, whose turn has come. An execution trace of the program has a region of it.
func (c *Comm) carryOn(call *Call) (err error) {
	if tracer.IsEnabled() {
		defer tracer.StartRegion(context.Background(), call.Kind.String()).End()
	}
	err = errPanicked
	defer func() { c.leave(call, err) }()
	return c.half(call)
}

// errPanicked is the error of an operation that has not returned.
var errPanicked = errors.New("panicked")

// leave gives the turn back. An operation that panicked (a user's operator may) ends the communicator: the other ranks
// wait in it.
func (c *Comm) leave(call *Call, err error) {
	if err == errPanicked {
		c.life.Abort(fmt.Errorf("%s %w", call.Kind, err))
	}
	c.life.Turn.Unlock()
}

// half gives a call to the half of the communicator that its memory belongs to. The caller holds the turn.
func (c *Comm) half(call *Call) error {
	switch {
	case c.stillborn:
		return c.life.Begin(call, nil)
	case !call.OnDevice():
		return c.host.Do(call)
	case !c.onGPU():
		return c.life.Locate(call, 0, fmt.Errorf("%w: GPU memory: %s", ErrUnsupported, c.noGPU), nil)
	}
	return c.gpu.Do(call)
}
