// Package bridge connects the kernels of GPUs that share no memory. It is for package
// gpupaths. A kernel's queues are pinned memory of its own process, and goroutines move
// the slots between them and the connections of any transport, one for each lane. A
// slot and its stamp travel as one message. With a transport.Placer the slots may lie in memory
// that the transport moves itself, a GPU's for example, and nothing is copied (placed.go). The
// package is part of a communicator, and nothing here is promised to other modules.
//
// Kernels and goroutines wait by polling: a kernel causes no interrupt. One goroutine polls
// for all waits, so polling takes one core at most, however many lanes there are. When nothing
// has come for a ms it polls less and less often, so an idle Bridge costs next to nothing.
//
// The trap: the first slot after a pause is late by 1/64 of the pause, at most 20 ms.
// Call Wake before a launch to avoid that.
package bridge

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/trace"
	"github.com/ringo-go/ringo/transport"
)

// Config is what a Bridge needs of its communicator.
type Config struct {
	Guard *fifo.Guard // of the Bridge's connections alone; its end ends the Bridge, and Close ends it
	// Fail is called with the reason when a connection breaks, but not after Close or the
	// Guard's end, nor for peers that said goodbye. The phase is "send" or "recv".
	Fail func(peer int, phase string, err error)
}

// A Bridge moves the slots of one rank. Its methods may be called from any
// goroutine.
type Bridge struct {
	cfg  Config
	work sync.WaitGroup

	mu       sync.Mutex
	ends     []interface{ Close() error }
	asleep   []*sleeper
	lanes    []*lane // with placed slots; each change makes a new slice
	polls    bool    // a goroutine polls for the sleepers, and moves lanes
	vigilant atomic.Bool
	wake     chan struct{}
	closed   atomic.Bool
}

// New makes a Bridge without connections.
func New(cfg Config) *Bridge { return &Bridge{cfg: cfg, wake: make(chan struct{}, 1)} }

// Out begins to send the slots that a kernel publishes in queues, one a lane, over
// connections that dial makes. It does not wait.
func (b *Bridge) Out(peer int, queues []Queue, dial func() (transport.SendConn, error)) {
	b.work.Go(func() {
		trace.Name("bridge")
		for lane, q := range queues {
			c, err := dial()
			if err == nil {
				err = b.keep(c)
			}
			if err == nil {
				err = greet(c, lane)
			}
			if err != nil {
				b.fail(peer, "send", err)
				return
			}
			b.work.Go(func() { b.fail(peer, "send", b.out(q, c)) })
		}
	})
}

// In begins to receive for a kernel the slots that the peer's Out sends, over
// connections that accept makes. It does not wait.
func (b *Bridge) In(peer int, queues []Queue, accept func() (transport.RecvConn, error)) {
	b.work.Go(func() {
		trace.Name("bridge")
		for range queues {
			c, err := accept()
			if err == nil {
				err = b.keep(c)
			}
			lane := 0
			if err == nil {
				lane, err = greeted(c, len(queues))
			}
			if err != nil {
				b.fail(peer, "recv", err)
				return
			}
			b.work.Go(func() { b.fail(peer, "recv", b.in(queues[lane], c)) })
		}
	})
}

// greet tells the receiver which lane a new connection is for.
func greet(c transport.SendConn, lane int) error {
	if _, err := c.Reserve(0); err != nil {
		return err
	}
	return c.Publish(transport.Stamp{uint64(lane)})
}

func greeted(c transport.RecvConn, lanes int) (int, error) {
	_, s, err := c.Next()
	if err != nil {
		return 0, err
	}
	if s[0] >= uint64(lanes) {
		return 0, fmt.Errorf("a connection for lane %d of %d", s[0], lanes)
	}
	return int(s[0]), c.Release()
}

// out moves slots from a kernel to a connection.
func (b *Bridge) out(q Queue, c transport.SendConn) error {
	posted := newSleeper(q.Posted)
	for count := uint64(0); ; count++ {
		if err := b.await(posted, count+1); err != nil {
			return err
		}
		h := q.header(count)
		if h.bytes > uint64(q.SlotBytes) {
			return fmt.Errorf("slot %d has %d bytes of %d", count, h.bytes, q.SlotBytes)
		}
		r, err := c.Reserve(int(h.bytes))
		if err != nil {
			return err
		}
		copy(r.Bytes(), q.slot(count))
		stamp := h.stamp
		q.Seen.Store(count + 1)
		if err := c.Publish(stamp); err != nil {
			return err
		}
	}
}

// in moves slots from a connection to a kernel.
func (b *Bridge) in(q Queue, c transport.RecvConn) error {
	posted := newSleeper(q.Posted)
	for count := uint64(0); ; count++ {
		r, stamp, err := c.Next()
		if err != nil {
			return err
		}
		if r.Len() > q.SlotBytes {
			return fmt.Errorf("%d bytes came for a slot of %d", r.Len(), q.SlotBytes)
		}
		if count >= uint64(q.Slots) {
			if err := b.await(posted, count+1-uint64(q.Slots)); err != nil {
				return err
			}
		}
		copy(q.slot(count), r.Bytes())
		*q.header(count) = header{stamp: stamp, bytes: uint64(r.Len())}
		q.Seen.Store(count + 1)
		if err := c.Release(); err != nil {
			return err
		}
	}
}

// keep remembers a connection until Close.
func (b *Bridge) keep(c interface{ Close() error }) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return errors.Join(fifo.ErrClosed, c.Close())
	}
	b.ends = append(b.ends, c)
	return nil
}

func (b *Bridge) fail(peer int, phase string, err error) {
	if err != nil && !errors.Is(err, fifo.ErrClosed) && b.ended() == nil {
		b.cfg.Fail(peer, phase, err)
	}
}

// Close ends all connections, and the Guard, and waits for the goroutines.
func (b *Bridge) Close() error {
	b.mu.Lock()
	b.closed.Store(true)
	ends := b.ends
	b.ends = nil
	b.mu.Unlock()
	b.Wake()
	var errs []error
	for _, c := range ends {
		errs = append(errs, c.Close())
	}
	b.cfg.Guard.Abort(fifo.ErrClosed)
	b.work.Wait()
	return errors.Join(errs...)
}
