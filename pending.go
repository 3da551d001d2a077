package ringo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/trace"
)

// A Pending is an operation under way, started with Start. Its memory must not
// be touched before it has ended.
type Pending struct {
	call *Call
	life *life.Life
	done chan struct{}
	err  error

	limit *limit // nil for none

	method func() error  // in place of a call, see Comm.inTurn
	begun  chan struct{} // closed when the turn of method has come
}

func newPending(l *life.Life, call *Call) *Pending {
	return &Pending{call: call, life: l, done: make(chan struct{})}
}

func (p *Pending) finish(err error) {
	p.err = err
	if p.limit != nil {
		p.limit.release()
	}
	close(p.done)
}

// Done is closed when the operation has ended, well or badly.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait waits for the operation's end and returns its error. The operation has
// its own deadline, so Wait always returns.
func (p *Pending) Wait() error {
	<-p.done
	if p.life == nil { // a nil Comm's
		return p.err
	}
	return p.life.Told(p.err)
}

// queueDepth is how many started operations may wait before Start does.
const queueDepth = 1024

// A queue holds the operations that were started and not yet carried out: a
// bounded work FIFO and the goroutine that empties it, both made when the first
// operation is started.
type queue struct {
	life     *life.Life
	carryOut func(*Pending) error

	work    atomic.Pointer[fifo.Work[*Pending]]
	last    atomic.Pointer[Pending]
	carrier sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// busy reports whether operations wait or are being carried out.
func (q *queue) busy() bool {
	w := q.work.Load()
	return w != nil && w.Len() > 0
}

// start puts a checked call in the queue.
func (q *queue) start(p *Pending) error {
	w, err := q.open()
	if err == nil {
		q.last.Store(p)
		err = w.Push(p)
	}
	if errors.Is(err, fifo.ErrClosed) {
		return ErrClosed
	}
	return err
}

// open makes the queue on first use.
func (q *queue) open() (*fifo.Work[*Pending], error) {
	if w := q.work.Load(); w != nil {
		return w, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	w := q.work.Load()
	if w == nil {
		w = fifo.NewWork[*Pending](queueDepth, &q.life.Guard)
		q.work.Store(w)
		q.carrier.Go(func() { q.carry(w) })
	}
	return w, nil
}

// carry carries out operations one after the other until the queue is closed and
// empty.
func (q *queue) carry(w *fifo.Work[*Pending]) {
	trace.Name("carrier")
	for {
		item, err := w.Next()
		if err != nil {
			return
		}
		p := *item
		err = q.carryOut(p)
		w.Done()
		p.finish(err)
	}
}

// drain waits for the operations that were started before, or until ctx ends.
func (q *queue) drain(ctx context.Context) error {
	p := q.last.Load()
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close waits until all started operations have been carried out.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	w := q.work.Load()
	q.mu.Unlock()
	if w != nil {
		w.Close()
		q.carrier.Wait()
	}
}

// A limit is the time until which a call, and the calls that it waits behind, may take.
type limit struct {
	life    *life.Life
	ctx     context.Context
	release func()       // is called when the call has ended
	begun   atomic.Bool  // the call has its turn, or the limit has passed before
	miss    func() error // ends the communicator, since the limit has passed before
}

// newLimit makes a call end when ctx does or its Timeout has passed: at the limit, or by an abort of the communicator.
func newLimit(ctx context.Context, of *life.Life, call *Call) *limit {
	cancel := func() {}
	if call.Timeout > 0 && !call.OnDevice() {
		ctx, cancel = context.WithTimeout(ctx, call.Timeout)
	}
	name := call.Kind.String()
	l := &limit{life: of, ctx: ctx, miss: sync.OnceValue(func() error {
		return of.FailIn(name,
			fmt.Errorf("%w before the call's turn came: what this rank has begun before is still under way", ErrTimeout))
	})}
	stop := context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			of.Abort(context.Cause(ctx))
		} else if l.begun.CompareAndSwap(false, true) { // else the call finds out whom it has waited for
			l.miss()
		}
	})
	l.release = func() {
		stop()
		cancel()
	}
	return l
}

// missed is the error of a call whose turn did not come.
func (l *limit) missed(call *Call, err error) error {
	switch {
	case l.ctx.Err() == nil: // see Turn.Inside
		return l.life.Locate(call, 0, err, nil)
	case errors.Is(l.ctx.Err(), context.DeadlineExceeded):
		l.begun.Store(true)
		return l.miss()
	}
	l.life.Abort(context.Cause(l.ctx))
	return l.life.Begin(call, nil)
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
