package fifo

// A Work is a bounded queue of work between callers, of which there may be
// many, and the one carrier that carries it out: a goroutine,
//
//	callers                          carrier
//	t, err := w.Push(item)           for {
//	…                                    item, err := w.Next()
//	err = t.Wait(guard)                  if err != nil { return } // closed and empty
//	                                     w.Done(carryOut(item))
//	                                 }
//
// or a device, which is told of each launch and does not call Next:
//
//	for len(items) > 0 {
//		t, n, err := w.PushSome(items)
//		…
//		launch(t)                    // and when the launch has ended: w.Complete(t, err)
//		items = items[n:]
//	}
//
// One pair of counters that only grow says all: produced is the number of items
// that ever went into the ring, consumed of those that are done. Work that does
// not pass the ring, such as what a graph has captured, moves neither, so a full
// ring is always due to work that is in it. Waits look at a Guard at least every
// 5 ms.
//
// Each call costs a mutex and, when somebody waits, one wake-up. None allocates.
type Work[T any] struct {
	*ledger
	ring  []T    // item i lies in ring[i mod capacity] while consumed ≤ i < produced
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
	if err := w.waitRoom(w.guard); err != nil {
		return Token{}, err
	}
	w.put(item)
	return Token{w.ledger, w.produced - 1, w.produced}, nil
}

// PushSome puts in as many of the items as there is room for, waiting until
// there is room for one. It returns their number and the Token of these. A group
// larger than the ring goes in part by part, and each part has to be a launch of
// its own: a device makes room only after a part that is in has been launched.
func (w *Work[T]) PushSome(items []T) (t Token, n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(items) == 0 {
		return Token{}, 0, nil
	}
	if err := w.waitRoom(w.guard); err != nil {
		return Token{}, 0, err
	}
	n = min(len(items), int(w.consumed+w.capacity-w.produced))
	for _, item := range items[:n] {
		w.put(item)
	}
	return Token{w.ledger, w.produced - uint64(n), w.produced}, n, nil
}

// put is the only place where produced moves.
//
// Preconditions: mu is held, there is room.
func (w *Work[T]) put(item T) {
	w.ring[w.produced%w.capacity] = item
	w.produced++
	w.work.Signal()
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
// Next. Completing a launch again does nothing. It panics when t is of another
// Work.
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

// Close makes blocked and later calls of Push and PushSome fail with ErrClosed
// and lets Next run dry. It may be called again and from any goroutine, and does
// not wait.
func (w *Work[T]) Close() { w.close() }

// Len is the number of items in the ring: not yet taken, or not yet done.
func (w *Work[T]) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int(w.produced - w.consumed)
}

// A Token is the completion of one launch: the items that one call put in. It is
// a value and may be dropped. The zero Token is the launch of nothing, which is
// done.
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
