package fifo

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
)

// States of an end of a queue, in shared memory. An end sets its own state; its
// peer may only turn parked into running, and then wakes it.
const (
	running uint32 = iota
	parked
	closed
)

// How long a wait stays in each of its stages. A spinning wait sees a message
// after the time that a cache line travels; a yielding one after about 1 µs; a
// parked one after 5 to 50 µs, but it leaves the core to others.
const (
	eagerPolls = 400                   // without looking at anything else
	spinTime   = 20 * time.Microsecond // only where every rank has a core
	yieldTime  = time.Millisecond
	drainTime  = 100 * time.Microsecond // a store is visible to all long before
	parkTime   = 50 * time.Millisecond  // the Guard is looked at this often
)

// When yielding does harm.
const (
	// A yield that takes longer than switchTime and ends the wait has run the other
	// party on this core. The system may leave both there for 20 ms while another core
	// is idle: an operation then takes 5 µs instead of 0.4. After bearable such yields
	// this end sleeps once, because the system may wake it on an idle core; the next
	// time it moves to another core by itself. If no core is idle neither helps, so
	// bearable doubles each time. Half of bearable is random, lest both ends move to the
	// same core.
	switchTime  = time.Microsecond
	minBearable = 8
	maxBearable = 512

	// A yield that takes longer than hogTime has lost the core to another program that
	// computes, for a time slice of some ms. A thread that is woken from sleep runs
	// before that program, one that yields runs after it. So the next waits sleep
	// without yielding.
	hogTime   = 2 * time.Millisecond
	minSleeps = 4
	maxSleeps = 256

	clockYields = 4 // between two looks at the clock, which costs a tenth of a yield
)

// Waiting is how an end of a queue waits.
type Waiting struct {
	Guard *Guard // ends waits; nil for never
	Spin  bool   // the other party runs on another core: spin before yielding
}

// A parker puts a goroutine to sleep on the state of its end.
type parker interface {
	yield()
	// move has this thread run on another core, if it can.
	move()
	// park sleeps while *state is parked, at most for d. It may return early.
	park(state *atomic.Uint32, d time.Duration)
	wake(state *atomic.Uint32)
}

// waiter is the part of Producer and Consumer that waits and is woken.
type waiter struct {
	guard     *Guard
	spin      bool
	own, peer *atomic.Uint32 // states of the two ends
	sleep     parker         // of this end
	peerSleep parker
	closed    atomic.Bool           // by this end
	stop      atomic.Pointer[error] // why no more can be sent or will come; this end closed, or it failed
	slow      atomic.Bool           // a goroutine waits and touches the memory of the queue
	yieldFor  time.Duration         // yieldTime, less in tests

	crowded  int  // yields in which the other party seems to have run on this core
	bearable int  // how many of them are too many
	moves    bool // the next time, this end moves
	sleepy   int  // waits that are to sleep at once
	sleeps   int  // the last value from which sleepy counted down
	yields   int  // since sleepy was last set
}

func (w *waiter) init(how Waiting, own, peer *atomic.Uint32, sleep, peerSleep parker) {
	w.guard, w.spin, w.yieldFor = how.Guard, how.Spin, yieldTime
	w.bearable, w.sleeps = minBearable, minSleeps
	w.own, w.peer, w.sleep, w.peerSleep = own, peer, sleep, peerSleep
	if w.guard == nil {
		w.guard = new(Guard)
	}
}

// change waits until *word is no longer old. Both ends wait with it: the
// Consumer for the word of the next slot, the Producer for the released count.
func (w *waiter) change(word *atomic.Uint64, old uint64) error {
	if w.spin {
		for range eagerPolls {
			if word.Load() != old {
				return nil
			}
		}
	}
	w.slow.Store(true)
	var err error
	late := w.sleepy > 0
	if late {
		w.sleepy--
		w.guard.Waits(Now())
	} else {
		err, late = w.poll(word, old)
	}
	if late {
		err = w.doze(word, old)
	}
	w.slow.Store(false)
	return err
}

// pollers is how many goroutines of this process poll and yield the thread, because there are fewer cores than ranks.
var pollers atomic.Int32

// poll spins and yields for a while; late is true when that was in vain, or when
// this end had better sleep.
func (w *waiter) poll(word *atomic.Uint64, old uint64) (err error, late bool) {
	if !w.spin && w.sleep == (sharedParker{}) {
		pollers.Add(1)
		defer pollers.Add(-1)
	}
	yield, ran := !w.spin, false
	start := Now()
	w.guard.Waits(start)
	for last := start; ; last = Now() {
		for i := range 32 {
			if word.Load() != old {
				if ran {
					w.crowded++
				}
				return nil, false
			}
			ran = false
			if !yield {
				pause()
				continue
			}
			w.sleep.yield()
			if i%clockYields == clockYields-1 {
				now := Now()
				if w.lost(now - last) {
					return nil, true
				}
				last = now
			}
		}
		if err := w.ended(); err != nil {
			return lastWords(word, old, err), false
		}
		now := Now()
		waited := time.Duration(now - start)
		if waited > w.yieldFor {
			return nil, true
		}
		if !yield {
			// The system may have put both parties on one core: spinning on would
			// only keep the other from running.
			if w.crowded > w.bearable/2 && w.crowded > rand.IntN(w.bearable) {
				if w.crowded, w.bearable = 0, min(2*w.bearable, maxBearable); !w.spread() {
					return nil, true
				}
			}
			w.sleep.yield()
			took := Now() - now
			if ran = took > int64(switchTime); w.lost(took) {
				return nil, true
			}
		}
		if yield = yield || waited > spinTime; yield {
			runtime.Gosched() // costs more than yielding the thread: it may start another
		}
	}
}

// lost reports whether yields that took this many ns have lost the core to a program that
// computes. Then this end sleeps, also in the next waits.
func (w *waiter) lost(took int64) bool {
	w.yields += clockYields
	if took <= int64(hogTime) {
		return false
	}
	w.sleepLater()
	return true
}

// spread moves this end to another core every second time; false if it should
// sleep instead.
func (w *waiter) spread() bool {
	w.moves = !w.moves
	if w.moves {
		return false
	}
	w.sleep.move()
	return true
}

// sleepLater makes the next waits sleep at once, after a yield that lost the core to
// another program. Their number doubles if few yields went well since the last loss.
func (w *waiter) sleepLater() {
	if w.yields > 16 {
		w.sleeps = minSleeps
	} else {
		w.sleeps = min(2*w.sleeps, maxSleeps)
	}
	w.sleepy, w.yields = w.sleeps, 0
}

// doze sleeps until the peer wakes it.
//
// This end stores parked and then looks at the word and at both states; the peer
// stores the word (or closes) and then looks for parked. But the peer does not
// wait until its store is seen (storeRelease), so the peer may find this end running
// while this end still finds the word old. Therefore the first sleep is short:
// after that sleep a store which the peer made before its look is visible, and a
// later store comes with a wake. park itself sleeps only while the state is parked.
func (w *waiter) doze(word *atomic.Uint64, old uint64) error {
	for {
		w.own.CompareAndSwap(running, parked)
		drained := Now() + int64(drainTime)
		err := w.ended()
		for d := drainTime; err == nil && word.Load() == old && w.own.Load() == parked; {
			w.sleep.park(w.own, d)
			err = w.ended()
			if Now() > drained {
				d = parkTime
			}
		}
		w.own.CompareAndSwap(parked, running)
		if err != nil {
			return lastWords(word, old, err)
		}
		if word.Load() != old {
			return nil
		}
	}
}

// lastWords is err, or nil if the word changed: a message that the peer sent
// before closing still counts.
func lastWords(word *atomic.Uint64, old uint64, err error) error {
	if word.Load() != old {
		return nil
	}
	return err
}

// ended is why this end must not wait any longer, nil if it may.
func (w *waiter) ended() error {
	if p := w.stop.Load(); p != nil && *p != ErrClosed {
		return *p
	}
	if err := w.guard.Err(); err != nil {
		return err
	}
	if w.closed.Load() || w.peer.Load() > parked {
		return ErrClosed
	}
	return nil
}

// wakePeer is called when the peer is not running: it sleeps, or it has closed.
func (w *waiter) wakePeer() {
	if w.peer.CompareAndSwap(parked, running) {
		w.peerSleep.wake(w.peer)
	} else if w.peer.Load() > parked {
		w.stop.CompareAndSwap(nil, &closedError)
	}
}

var closedError = ErrClosed

// Close ends the queue from this side and wakes both ends. The Consumer still
// gets messages that were published before its Producer closed. Any goroutine may
// call Close, and again.
func (w *waiter) Close() error {
	if w.closed.Swap(true) {
		return nil
	}
	w.stop.CompareAndSwap(nil, &closedError)
	if w.own.Swap(closed) == parked {
		w.sleep.wake(w.own)
	}
	w.wakePeer()
	return nil
}

// Fail ends the waits of this end with err, without a sign to the peer: the peer
// is gone. Messages that are in the queue can still be received.
func (w *waiter) Fail(err error) {
	w.stop.CompareAndSwap(nil, &err)
	if w.own.CompareAndSwap(parked, running) {
		w.sleep.wake(w.own)
	}
}

// Drain waits until no goroutine of this end is inside a wait, after Close. It
// is called before the memory of the queue is given back.
func (w *waiter) Drain() {
	for w.slow.Load() {
		time.Sleep(100 * time.Microsecond)
	}
}
