package fifo

import (
	"fmt"
	"sync"
	"time"
)

// A ledger is a Work without its items: the counters, who waits for what, and
// what failed. Work whose items lie in a device's memory can share it.
//
// Items are numbered from 0 in the order they went in. Always
// consumed ≤ taken ≤ produced ≤ consumed + capacity.
type ledger struct {
	capacity uint64 // immutable

	mu       sync.Mutex // guards all below
	produced uint64     // items that have gone in
	taken    uint64     // items that Next has handed out: the carrier's own cursor
	consumed uint64     // items that are done
	failed   failures   // those of them that did not end well
	closed   bool

	room, work, done sync.Cond // callers wait for room and done, the carrier for work

	tick    *time.Timer // wakes waits to look at their Guard
	ticking bool        // it will fire
}

// tickPeriod is how often a parked wait looks at its Guard, which cannot call
// back: the time that an abort or a deadline may be late. A wait that ends sooner
// never sees a tick.
const tickPeriod = 5 * time.Millisecond

func newLedger(capacity int) *ledger {
	l := &ledger{capacity: uint64(capacity)}
	for _, c := range []*sync.Cond{&l.room, &l.work, &l.done} {
		c.L = &l.mu
	}
	return l
}

// wait parks on c until it is signalled, or a tick makes the caller look again
// at what it waits for. It fails when g has ended.
//
// Preconditions: mu is held.
func (l *ledger) wait(c *sync.Cond, g *Guard) error {
	if g == nil {
		c.Wait()
		return nil
	}
	if err := g.Err(); err != nil {
		return err
	}
	if !l.ticking {
		l.ticking = true
		if l.tick == nil {
			l.tick = time.AfterFunc(tickPeriod, l.onTick)
		} else {
			l.tick.Reset(tickPeriod)
		}
	}
	c.Wait()
	return nil
}

// onTick wakes all that may wait with a Guard. A wait that goes on starts the tick
// again.
func (l *ledger) onTick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ticking = false
	l.room.Broadcast()
	l.done.Broadcast()
}

// waitRoom waits until an item may go in.
//
// Preconditions: mu is held.
func (l *ledger) waitRoom(g *Guard) error {
	for !l.closed && l.produced-l.consumed == l.capacity {
		if err := l.wait(&l.room, g); err != nil {
			return fmt.Errorf("work fifo full: %s: %w", l.counters(), err)
		}
	}
	if l.closed {
		return fmt.Errorf("work fifo closed: %s: %w", l.counters(), ErrClosed)
	}
	return nil
}

// waitDone waits until item seq is done.
//
// Preconditions: mu is held.
func (l *ledger) waitDone(seq uint64, g *Guard) error {
	for l.consumed <= seq {
		if err := l.wait(&l.done, g); err != nil {
			return fmt.Errorf("work fifo: item %d not done: %s: %w", seq, l.counters(), err)
		}
	}
	return nil
}

// complete marks all items before end as done, with err as the result of those
// that were not done yet.
//
// Preconditions: mu is held, consumed < end ≤ produced.
func (l *ledger) complete(end uint64, err error) {
	if err != nil {
		l.failed.add(l.consumed, end, err)
	}
	l.consumed = end
	l.taken = max(l.taken, end)
	l.room.Broadcast() // there may be room for several callers
	l.done.Broadcast()
}

func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.room.Broadcast()
	l.work.Broadcast()
}

func (l *ledger) counters() string {
	return fmt.Sprintf("produced %d, consumed %d, capacity %d", l.produced, l.consumed, l.capacity)
}
