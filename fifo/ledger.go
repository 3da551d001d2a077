package fifo

import (
	"fmt"
	"sync"
	"time"
)

// A ledger is a Work without its items: the counters, who waits for what, and
// what failed. It is the half that work on a device will share.
//
// Items are numbered from 0 in the order they went in. Always
// consumed ≤ taken ≤ produced ≤ consumed + capacity.
type ledger struct {
	capacity uint64 // immutable

	mu       sync.Mutex // guards all below
	produced uint64     // items that have gone in
	taken    uint64     // items that Next has handed out: the consumer's own cursor
	consumed uint64     // items that are done
	failed   failures   // those of them that did not end well
	closed   bool
	busy     bool // a producer is between the items of its group; the others wait for their turn

	turn, room, work, done sync.Cond // see wait; busy's owner alone waits for room

	waiting int         // waits under way that a Guard may end
	ticking bool        // tick will fire
	tick    *time.Timer // wakes them to look at it
}

// tickPeriod is how often a parked wait looks at its Guard, which cannot call
// back: the time that an abort or a deadline may be late. Waits that end sooner
// never see a tick.
const tickPeriod = 5 * time.Millisecond

func newLedger(capacity int) *ledger {
	l := &ledger{capacity: uint64(capacity)}
	for _, c := range []*sync.Cond{&l.turn, &l.room, &l.work, &l.done} {
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
	l.waiting++
	if !l.ticking {
		l.ticking = true
		if l.tick == nil {
			l.tick = time.AfterFunc(tickPeriod, l.onTick)
		} else {
			l.tick.Reset(tickPeriod)
		}
	}
	c.Wait()
	l.waiting--
	return nil
}

func (l *ledger) onTick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ticking = l.waiting > 0
	if l.ticking {
		l.tick.Reset(tickPeriod)
	}
	l.turn.Broadcast()
	l.room.Broadcast()
	l.done.Broadcast()
}

// begin waits for this producer's turn. It is given back with end. A wait that
// fails found the turn taken, so no signal of it is lost: its owner's end is
// still to come.
//
// Preconditions: mu is held.
func (l *ledger) begin(g *Guard) error {
	for l.busy && !l.closed {
		if err := l.wait(&l.turn, g); err != nil {
			return l.full(err)
		}
	}
	if l.closed {
		return l.full(ErrClosed)
	}
	l.busy = true
	return nil
}

// end gives the turn to the next producer.
//
// Preconditions: mu is held.
func (l *ledger) end() {
	l.busy = false
	l.turn.Signal()
}

// Preconditions: mu is held.
func (l *ledger) isFull() bool { return l.produced-l.consumed == l.capacity }

// waitRoom waits until an item may go in.
//
// Preconditions: mu is held, the caller has the turn.
func (l *ledger) waitRoom(g *Guard) error {
	for l.isFull() && !l.closed {
		if err := l.wait(&l.room, g); err != nil {
			return l.full(err)
		}
	}
	if l.closed {
		return l.full(ErrClosed)
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
	l.room.Signal()
	l.done.Broadcast()
}

func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.turn.Broadcast()
	l.room.Broadcast()
	l.work.Broadcast()
}

func (l *ledger) full(err error) error {
	what := "full"
	if err == ErrClosed {
		what = "closed"
	}
	return fmt.Errorf("work fifo %s: %s: %w", what, l.counters(), err)
}

func (l *ledger) counters() string {
	return fmt.Sprintf("produced %d, consumed %d, capacity %d", l.produced, l.consumed, l.capacity)
}
