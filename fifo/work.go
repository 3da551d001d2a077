package fifo

import "errors"

// ErrFull is what TryPush returns when it would have to wait.
var ErrFull = errors.New("work fifo full")

// A Work is a bounded queue of work between callers, of which there may be
// many, and the one goroutine that carries it out:
//
//	callers                          carrier
//	t, err := w.Push(item)           for {
//	…                                    item, err := w.Next()
//	err = t.Wait(guard)                  if err != nil { return } // closed and empty
//	                                     w.Done(carryOut(item))
//	                                 }
//
// One pair of counters that only grow says all: produced is the number of
// items that ever went into the ring, consumed of those that are done. Nothing
// else moves them, so a full ring is always due to work that is in it: work
// that never passes the ring (Captured) cannot fill it.
//
// Each call that puts items in is a launch and has a Token of its own. A launch
// larger than the ring goes in part by part while the carrier makes room, and
// stays together: no item of another caller comes between. Waits look at a
// Guard at least every 5 ms.
//
// Push, Next and Done cost a mutex and, when somebody waits, one wake-up; they
// do not allocate.
type Work[T any] struct {
	*ledger
	ring  []T    // item i lies in ring[i mod capacity]; the callers' from consumed+capacity back to produced, else the carrier's
	guard *Guard // ends the waits of callers
}

// NewWork is an empty ring for capacity ≥ 1 items. Waiting to put work in ends
// with an error when g, which may be nil, does.
func NewWork[T any](capacity int, g *Guard) *Work[T] {
	if capacity < 1 {
		panic("fifo: NewWork with a capacity below 1")
	}
	return &Work[T]{ledger: newLedger(capacity), ring: make([]T, capacity), guard: g}
}

// Push puts an item in, waiting while the ring is full. The error wraps the
// Guard's, or ErrClosed, and names the counters; the item is then not in.
func (w *Work[T]) Push(item T) (Token, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(w.guard); err != nil {
		return Token{}, err
	}
	defer w.end()
	if err := w.waitRoom(w.guard); err != nil {
		return Token{}, err
	}
	return w.put(item), nil
}

// PushAll puts a group of items in, waiting whenever the ring is full, so the
// caller must not be the carrier. It returns how many went in, all of them
// unless there is an error, and the Token of these.
func (w *Work[T]) PushAll(items []T) (Token, int, error) {
	return w.pushMany(items, true)
}

// PushSome puts in as many of the items as there is room for, waiting until
// there is room for one. It is for a carrier that must be told of each launch,
// such as a device: it will make room only after the part that is in has been
// launched, so each part must be a launch with a Token of its own:
//
//	for len(items) > 0 {
//		t, n, err := w.PushSome(items)
//		…
//		launch(t)
//		items = items[n:]
//	}
func (w *Work[T]) PushSome(items []T) (Token, int, error) {
	return w.pushMany(items, false)
}

func (w *Work[T]) pushMany(items []T, all bool) (Token, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(items) == 0 {
		return Token{}, 0, nil
	}
	if err := w.begin(w.guard); err != nil {
		return Token{}, 0, err
	}
	defer w.end()
	t := Token{ledger: w.ledger, first: w.produced, end: w.produced}
	for n, item := range items {
		if n > 0 && !all && w.isFull() {
			return t, n, nil
		}
		if err := w.waitRoom(w.guard); err != nil {
			return t, n, err
		}
		t.end = w.put(item).end
	}
	return t, len(items), nil
}

// TryPush is Push without waiting: the error is ErrFull or wraps ErrClosed.
func (w *Work[T]) TryPush(item T) (Token, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return Token{}, w.full(ErrClosed)
	case w.busy || w.isFull():
		return Token{}, ErrFull
	}
	return w.put(item), nil
}

// put is the only place where produced moves.
//
// Preconditions: mu is held, there is room, nobody else has the turn.
func (w *Work[T]) put(item T) Token {
	seq := w.produced
	w.ring[seq%w.capacity] = item
	w.produced++
	w.work.Signal()
	return Token{ledger: w.ledger, first: seq, end: seq + 1}
}

// Next waits for the next item and returns its place in the ring, valid until
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

// Done ends the oldest item that Next returned and that is not done; err is its
// result for those who wait. It panics when there is no such item.
func (w *Work[T]) Done(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.consumed == w.taken {
		panic("fifo: Done without Next: " + w.counters())
	}
	w.retire(w.consumed+1, err)
}

// Complete ends all items up to the last one of launch t, with the result err
// for those that were not done. It is Done for a carrier that does not call
// Next, such as a device that reads the ring itself and signals each launch.
// Completing a launch again does nothing. It panics when t is of another Work.
func (w *Work[T]) Complete(t Token, err error) {
	if t.ledger != w.ledger {
		panic("fifo: Complete with a token of another work fifo")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.consumed < t.end {
		w.retire(t.end, err)
	}
}

// retire forgets the items, so that what they refer to can be collected, and
// is the only place where consumed moves.
//
// Preconditions: mu is held, consumed < end ≤ produced.
func (w *Work[T]) retire(end uint64, err error) {
	var zero T
	for i := w.consumed; i < end; i++ {
		w.ring[i%w.capacity] = zero
	}
	w.complete(end, err)
}

// Close makes blocked and later calls of Push fail with ErrClosed and lets Next
// run dry. It may be called again and from any goroutine, and does not wait.
func (w *Work[T]) Close() { w.close() }

// Len is the number of items in the ring: not yet taken, or not yet done.
func (w *Work[T]) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.produced - w.consumed)
}

// Cap is the number of items that fit.
func (w *Work[T]) Cap() int { return int(w.capacity) }

// Produced is the number of items that ever went in.
func (w *Work[T]) Produced() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.produced
}

// Consumed is the number of items that are done.
func (w *Work[T]) Consumed() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.consumed
}

// A Token is the completion of one launch: the items of one call that
// put them in. It is a value without a finalizer and may be dropped. The zero Token
// is the launch of nothing, which is done.
type Token struct {
	*ledger
	first, end uint64 // items first ≤ i < end
}

// Wait waits until the launch is done and returns the result of its first item
// that failed, or nil. If g, which may be nil, ends first, the error wraps g's
// and names the counters; the items are then still in the ring, and the memory
// they name still in use.
func (t Token) Wait(g *Guard) error {
	if t.first == t.end {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitDone(t.end-1, g); err != nil {
		return err
	}
	return t.failed.of(t.first, t.end)
}

// Done reports whether Wait would return at once.
func (t Token) Done() bool {
	if t.first == t.end {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.consumed >= t.end
}
