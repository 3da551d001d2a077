package fifo

import (
	"fmt"
	"sync"
	"time"
)

// A Work is a bounded queue of work between any number of callers and one
// goroutine, the carrier, that carries the work out:
//
//	callers                          carrier
//	err := w.Push(item)              for {
//	                                     item, err := w.Next()
//	                                     if err != nil { return } // closed and empty
//	                                     carryOut(item)
//	                                     w.Done()
//	                                 }
//
// Items are numbered from 0 in the order they went in. Always
// consumed ≤ taken ≤ produced ≤ consumed + capacity, and all of them only grow.
//
// Each call costs a mutex and, when somebody waits, one wake-up. None allocates.
// Space is the queue of work for a device.
type Work[T any] struct {
	ring     []T    // item i lies in ring[i mod capacity] while consumed ≤ i < produced
	guard    *Guard // ends the waits of callers
	capacity uint64

	mu       sync.Mutex // guards all below
	produced uint64     // items that have gone in
	taken    uint64     // items that Next has handed out
	consumed uint64     // items that are done
	closed   bool

	free, work sync.Cond // callers wait for room, the carrier for work

	tick    *time.Timer // wakes callers to look at the Guard
	ticking bool        // tick will fire
}

// tickPeriod is how often a parked wait looks at its Guard, which cannot call
// back: the time that an abort or a deadline may be late. A wait that ends sooner
// never sees a tick.
const tickPeriod = 5 * time.Millisecond

// NewWork is an empty ring for capacity ≥ 1 items. A Push that waits fails when g
// ends; with a nil g only Close ends its wait.
func NewWork[T any](capacity int, g *Guard) *Work[T] {
	if capacity < 1 {
		panic("fifo: NewWork with a capacity below 1")
	}
	w := &Work[T]{ring: make([]T, capacity), guard: g, capacity: uint64(capacity)}
	w.free.L, w.work.L = &w.mu, &w.mu
	return w
}

// Push puts an item in, waiting while the ring is full. The error wraps the
// Guard's, or ErrClosed, and names the counters; the item is then not in.
func (w *Work[T]) Push(item T) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed && w.produced-w.consumed == w.capacity {
		if err := w.wait(); err != nil {
			return fmt.Errorf("work fifo full: %s: %w", w.counters(), err)
		}
	}
	if w.closed {
		return fmt.Errorf("work fifo closed: %s: %w", w.counters(), ErrClosed)
	}
	w.ring[w.produced%w.capacity] = item
	w.produced++
	w.work.Signal()
	return nil
}

// wait parks until there may be room, or a tick makes the caller look again. It
// fails when the Guard has ended.
//
// Preconditions: mu is held.
func (w *Work[T]) wait() error {
	if w.guard == nil {
		w.free.Wait()
		return nil
	}
	if err := w.guard.Err(); err != nil {
		return err
	}
	if !w.ticking {
		w.ticking = true
		if w.tick == nil {
			w.tick = time.AfterFunc(tickPeriod, w.onTick)
		} else {
			w.tick.Reset(tickPeriod)
		}
	}
	w.free.Wait()
	return nil
}

// onTick wakes all callers. A wait that goes on starts the tick again.
func (w *Work[T]) onTick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ticking = false
	w.free.Broadcast()
}

// Next waits for the next item and returns its memory in the ring, valid until
// the item is done. The carrier may take several before the first is done. No
// Guard ends this wait, for having nothing to do is no failure. After Close
// Next hands out what is left and then returns ErrClosed, so that the carrier
// can carry out or refuse every item that went in.
func (w *Work[T]) Next() (*T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.taken == w.produced {
		if w.closed {
			return nil, ErrClosed
		}
		w.work.Wait()
	}
	item := &w.ring[w.taken%w.capacity]
	w.taken++
	return item, nil
}

// Done ends the oldest item that Next returned and that is not done. It panics
// when there is no such item.
func (w *Work[T]) Done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.consumed == w.taken {
		panic("fifo: Done without Next: " + w.counters())
	}
	var zero T
	w.ring[w.consumed%w.capacity] = zero // so that the item's memory can be collected
	w.consumed++
	w.free.Broadcast()
}

// Close makes blocked and later calls of Push fail with ErrClosed and lets Next
// run dry. It may be called again and from any goroutine, and does not wait.
func (w *Work[T]) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.free.Broadcast()
	w.work.Broadcast()
}

// Len is the number of items in the ring: not yet taken, or not yet done.
func (w *Work[T]) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.produced - w.consumed)
}

func (w *Work[T]) counters() string {
	return fmt.Sprintf("produced %d, consumed %d, capacity %d", w.produced, w.consumed, w.capacity)
}
