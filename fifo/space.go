package fifo

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// A Space is the bounded queue of work for a device: a ring of bytes in its memory, which
// holds the input of each launch. The host puts bytes in, and the device itself tells how
// far it is done:
//
//	off, token, err := s.Reserve(n, guard)
//	…                     // queue a copy to bytes off … off+n-1 of the ring
//	err = launch(token)   // a kernel that stores token in *consumed at its end
//	s.Commit(token)       // if the kernel was queued
//
// The state is two numbers that only grow: produced bytes have gone in, and the device is
// done with consumed of them. The token of a launch is the value of produced after it. The
// queue rests on five rules; model/space.pml breaks each, and TestSpaceModel checks the code:
//
//   - Launches end in the order of their tokens, also when they are aborted, and a
//     kernel stores its token after its last read.
//   - A launch that failed is not committed, so nobody waits for its end.
//   - Work that a graph has captured has memory of its own and no token: a graph may
//     run never, or often.
//   - A launch's bytes lie in one piece. Bytes that are left out for that at the end of
//     the ring count as the launch's.
//   - The memory of the ring is given back when all launches have ended.
//
// One goroutine at a time may use a Space. Nothing allocates but errors.
type Space struct {
	ledger
	device *atomic.Uint64 // the last token that the device has stored
}

// NewSpace is an empty ring of capacity ≥ 1 bytes. The device stores tokens to
// consumed, which is 0 at first.
func NewSpace(capacity int, consumed *atomic.Uint64) *Space {
	if capacity < 1 {
		panic("fifo: NewSpace with a capacity below 1")
	}
	return &Space{ledger{capacity: uint64(capacity)}, consumed}
}

// Reserve finds room for n bytes, which begin at byte off of the ring, and waits while
// there is none. The bytes are the launch's once Commit is called; a Reserve before that
// replaces this one. The error wraps g's or ErrCorrupt and names the counters. A wait
// yields for some µs, then sleeps; it sees within a ms that there is room.
func (s *Space) Reserve(n int, g *Guard) (off int, token uint64, err error) {
	if n < 1 || uint64(n) > s.capacity {
		return 0, 0, fmt.Errorf("work fifo: %d bytes for one launch: want 1 to %d", n, s.capacity)
	}
	for i := 0; ; i++ {
		done := s.device.Load()
		if i > 0 {
			if err := g.Err(); err != nil { // an abort ends launches too: their room is no success
				return 0, 0, fmt.Errorf("work fifo full: no room for %d bytes: %s: %w", n, s, err)
			}
		}
		if err := s.learn(done); err != nil {
			return 0, 0, err
		}
		if end, ok := s.fit(uint64(n)); ok {
			return int((end - uint64(n)) % s.capacity), end, nil
		}
		if i < yields {
			runtime.Gosched()
		} else {
			time.Sleep(min(shortNap<<min((i-yields)/8, 16), longNap))
		}
	}
}

// A wait for a device yields at first, then sleeps: the device is far behind if the ring is full.
const (
	yields   = 64
	shortNap = 10 * time.Microsecond
	longNap  = time.Millisecond
)

// Commit takes the bytes of the last Reserve, whose token it is, into use: their launch is queued.
func (s *Space) Commit(token uint64) { s.commit(token) }

// Look reads how far the device is done, as Reserve does. An error wraps ErrCorrupt.
func (s *Space) Look() error { return s.learn(s.device.Load()) }

func (s *Space) learn(t uint64) error {
	if !s.retire(t) {
		return fmt.Errorf("work fifo: %w: the device is done with token %d: %s", ErrCorrupt, t, s)
	}
	return nil
}

// Oldest is the offset in the ring of the oldest launch that was not done at the last
// Look, false if all were.
func (s *Space) Oldest() (off int, ok bool) {
	return int(s.first() % s.capacity), s.consumed < s.produced
}

// Capacity is the length of the ring, in bytes.
func (s *Space) Capacity() int { return int(s.capacity) }

// String names the counters.
func (s *Space) String() string {
	return fmt.Sprintf("produced %d, consumed %d, capacity %d", s.produced, s.consumed, s.capacity)
}

// A ledger is a Space's numbers. Byte k of all that ever went in lies at k mod capacity.
// Always consumed ≤ produced ≤ consumed + capacity.
type ledger struct {
	capacity uint64
	produced uint64 // the end of the last launch
	consumed uint64 // the end of the last one that is done
	skipped  uint64 // where the bytes begin that were last left out at the end of the ring,
	resumed  uint64 // and where they end
}

// fit is the end of n bytes that may be written, false if there is no room now.
func (l *ledger) fit(n uint64) (end uint64, ok bool) {
	start := l.start(n)
	if l.consumed == l.produced { // bytes left out are not in use
		l.produced, l.consumed = start, start
	}
	return start + n, start+n-l.consumed <= l.capacity
}

// start is where the next n bytes begin that lie in one piece.
func (l *ledger) start(n uint64) uint64 {
	if at := l.produced % l.capacity; at+n > l.capacity {
		return l.produced + l.capacity - at
	}
	return l.produced
}

// commit takes the bytes up to end into use; nothing else does.
func (l *ledger) commit(end uint64) {
	if end%l.capacity != 0 && end/l.capacity > l.produced/l.capacity {
		l.skipped, l.resumed = l.produced, end/l.capacity*l.capacity
	}
	l.produced = end
}

// retire frees all bytes before token. It reports false if token lies beyond produced.
func (l *ledger) retire(token uint64) bool {
	l.consumed = max(l.consumed, token)
	return l.consumed <= l.produced
}

// first is where the oldest launch begins that is not done.
func (l *ledger) first() uint64 {
	if l.consumed == l.skipped {
		return max(l.consumed, l.resumed)
	}
	return l.consumed
}
