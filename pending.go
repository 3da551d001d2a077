package ringo

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

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

	limit   *limit // nil for none
	release func() // gives back what watches it, nil for nothing

	method func() error  // in place of a call, see Comm.inTurn
	begun  chan struct{} // closed when the turn of method has come
}

func newPending(l *life.Life, call *Call) *Pending {
	return &Pending{call: call, life: l, done: make(chan struct{})}
}

func (p *Pending) finish(err error) {
	p.err = err
	if p.release != nil {
		p.release()
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
