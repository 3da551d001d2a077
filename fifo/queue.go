package fifo

import (
	"errors"
	"fmt"
	"math"

	"github.com/ringo-go/ringo/mem"
)

// A Stamp is two words that travel with a slot and mean nothing to the queue.
type Stamp = [2]uint64

// InlineBytes is the longest payload that rides inside the header of its slot,
// so that the whole message is one cache line.
const InlineBytes = 40

// Geometry is the shape of a queue. Both ends must have the same.
type Geometry struct {
	Slots     int // messages that can wait in the queue, ≥ 2
	SlotBytes int // longest payload of one message
}

// Check says what is wrong with g, nil if nothing.
func (g Geometry) Check() error {
	switch {
	case g.Slots < 2 || g.Slots > 1<<20:
		return fmt.Errorf("queue of %d slots: must be 2 to %d", g.Slots, 1<<20)
	case g.SlotBytes < 0 || g.SlotBytes > math.MaxInt32-pageBytes:
		return fmt.Errorf("slots of %d bytes: must be 0 to %d", g.SlotBytes, math.MaxInt32-pageBytes)
	case int64(g.Slots)*int64(g.SlotBytes+lineBytes) > math.MaxInt/2:
		return fmt.Errorf("queue of %d slots of %d bytes: too large for this machine", g.Slots, g.SlotBytes)
	}
	return nil
}

// Size is the memory that a queue of this shape needs, in bytes.
func (g Geometry) Size() int { return g.payloadAt() + g.Slots*g.stride() }

// ErrCorrupt is wrapped by errors about a queue whose memory holds what no
// honest peer writes.
var ErrCorrupt = errors.New("queue memory is corrupt")

// A Producer is the writing end of a queue between two parties that share
// memory: goroutines or processes. Messages are written in place: Reserve, fill,
// Publish. One goroutine at a time may use it; Close and Fail may be called
// from any. A queue has one Producer and one Consumer.
//
// The parties share nothing but the bytes below; every number has one writer.
//
//	  0 ┌────────────────────────────────────────────┐
//	    │ consumer state u32 │ producer state u32    │ running, parked, closed: rarely written,
//	128 ├────────────────────────────────────────────┤ so both cores keep a copy of this line
//	    │ released u64                               │ by the Consumer: slots given back so far
//	256 ├────────────────────────────────────────────┤
//	    │ word u64 │ stamp 2×u64 │ inline payload 40 │ header of slot 0, by the Producer
//	    ├────────────────────────────────────────────┤
//	    │ word u64 │ stamp 2×u64 │ inline payload 40 │ header of slot 1, …
//	    ├────────────────────────────────────────────┤ page boundary
//	    │ payload of slot 0, SlotBytes               │
//	    │ payload of slot 1, …                       │
//	    └────────────────────────────────────────────┘
//
// Lines of different writers are 128 bytes apart, because processors fetch
// cache lines in pairs. There is no shared tail: word is the ordinal of the
// message (from 1, modulo 2³²) in its high half and the length of the payload
// in its low half, and the Consumer polls the word of the slot that is next.
// A payload of up to InlineBytes lies beside its word, so a small message moves
// one line from core to core and nothing else. Larger payloads start at page
// boundaries where SlotBytes allows: copies between buffers whose addresses
// differ by a little more than a multiple of 4096 are slow (4K aliasing).
type Producer struct {
	waiter
	ring
	next     *header
	index    uint32              // slot of next
	ordinal  uint32              // of the next message, from 1
	free     uint32              // slots known to be free
	reserved int                 // length under Reserve, -1 for none
	released uint64              // last seen
	sent     uint64              // messages published
	_        [2 * lineBytes]byte // the next object may be the Consumer, on another core
}

// A Consumer is the reading end of a queue; see Producer. One goroutine at a
// time may use it; Close and Fail may be called from any.
type Consumer struct {
	waiter
	ring
	next     *header
	index    uint32
	ordinal  uint32
	held     bool // between Next and Release
	released uint64
	_        [2 * lineBytes]byte
}

func (p *Producer) init(r ring, how Waiting, own, peer parker) {
	p.waiter.init(how, &r.ctl.producer, &r.ctl.consumer, own, peer)
	p.ring = r
	p.next, p.ordinal, p.free, p.reserved = r.header(0), 1, r.slots, -1
}

func (c *Consumer) init(r ring, how Waiting, own, peer parker) {
	c.waiter.init(how, &r.ctl.consumer, &r.ctl.producer, own, peer)
	c.ring = r
	c.next, c.ordinal = r.header(0), 1
}

// Reserve waits for a free slot and returns n bytes of it to be filled; their
// content is undefined. A second Reserve before Publish replaces the first.
// Errors: n is not 0 to SlotBytes; the queue was closed by either end (ErrClosed)
// or failed; the Guard has ended (its deadline is looked at only while waiting).
func (p *Producer) Reserve(n int) (mem.Region, error) {
	if p.free == 0 || p.guard.cause.Load() != nil || p.stop.Load() != nil {
		if err := p.space(); err != nil {
			return mem.Region{}, err
		}
	}
	if uint(n) > uint(p.slotBytes) {
		return mem.Region{}, fmt.Errorf("reserve %d bytes: a slot holds 0 to %d", n, p.slotBytes)
	}
	p.reserved = n
	if n > InlineBytes && p.local != nil && n > len(p.local[p.index]) {
		p.grow(p.index, n)
	}
	return p.bytes(p.next, p.index, n), nil
}

// space waits until a slot is free.
func (p *Producer) space() error {
	if err := p.ended(); err != nil {
		return err
	}
	for p.free == 0 {
		if released := p.ctl.released.Load(); released == p.released {
			if err := p.change(&p.ctl.released, released); err != nil {
				return err
			}
		}
		if err := p.refresh(); err != nil {
			return err
		}
	}
	return nil
}

// refresh counts the slots that the Consumer has given back.
func (p *Producer) refresh() error {
	released := p.ctl.released.Load()
	inUse := p.sent - released
	if inUse > uint64(p.slots) || released < p.released {
		return fmt.Errorf("%w: the receiver gave back %d slots of %d sent", ErrCorrupt, released, p.sent)
	}
	p.released, p.free = released, p.slots-uint32(inUse)
	return nil
}

// Free is how many messages can be reserved and published now without waiting
// for the Consumer. Only the goroutine that sends may ask.
func (p *Producer) Free() int {
	_ = p.refresh() // the next Reserve that has to wait finds the error too
	return int(p.free)
}

// Publish hands the reserved bytes and s to the Consumer. It does not wait.
// Errors: no slot is reserved; the queue was closed (ErrClosed) or failed.
func (p *Producer) Publish(s Stamp) error {
	if p.reserved < 0 || p.stop.Load() != nil {
		return p.unpublishable()
	}
	h := p.next
	h.stamp = s
	storeRelease(&h.word, uint64(p.ordinal)<<32|uint64(p.reserved))
	p.reserved = -1
	p.free--
	p.sent++
	p.ordinal++
	if p.index++; p.index == p.slots {
		p.index = 0
	}
	p.next = p.header(p.index)
	if p.peer.Load() != running {
		p.wakePeer()
	}
	return nil
}

func (p *Producer) unpublishable() error {
	if err := p.ended(); err != nil {
		return err
	}
	return errors.New("publish: no slot is reserved")
}

// Next waits for a message and returns its payload and stamp. The bytes stay
// valid and unchanged until Release; Next again before that returns the same.
// What was published before the Producer closed or failed is still delivered.
// Errors: the queue was closed (ErrClosed) or failed; the Guard has ended;
// ErrCorrupt.
func (c *Consumer) Next() (mem.Region, Stamp, error) {
	h := c.next
	word := h.word.Load()
	if uint32(word>>32) != c.ordinal || c.guard.cause.Load() != nil || c.closed.Load() {
		var err error
		if word, err = c.message(); err != nil {
			return mem.Region{}, Stamp{}, err
		}
	}
	n := uint32(word)
	if n > uint32(c.slotBytes) {
		return mem.Region{}, Stamp{}, fmt.Errorf("%w: message of %d bytes in a slot of %d", ErrCorrupt, n, c.slotBytes)
	}
	c.held = true
	return c.bytes(h, c.index, int(n)), h.stamp, nil
}

// message waits for the word of the next message.
func (c *Consumer) message() (uint64, error) {
	if c.closed.Load() {
		return 0, ErrClosed
	}
	if err := c.guard.Aborted(); err != nil {
		return 0, err
	}
	for {
		word := c.next.word.Load()
		switch uint32(word >> 32) {
		case c.ordinal:
			return word, nil
		case c.previous():
			if err := c.change(&c.next.word, word); err != nil {
				return 0, err
			}
		default:
			return 0, fmt.Errorf("%w: slot %d holds message %d, not %d", ErrCorrupt, c.index, word>>32, c.ordinal)
		}
	}
}

// previous is the ordinal that the next slot holds while its message is on the
// way: the one of a round ago, or 0 in the first round.
func (c *Consumer) previous() uint32 {
	if c.released < uint64(c.slots) {
		return 0
	}
	return c.ordinal - c.slots
}

// Release gives the slot of the last Next back to the Producer. Errors: no slot is
// held; this end was closed (ErrClosed).
func (c *Consumer) Release() error {
	if !c.held || c.closed.Load() {
		return c.unreleasable()
	}
	c.held = false
	c.released++
	storeRelease(&c.ctl.released, c.released)
	c.ordinal++
	if c.index++; c.index == c.slots {
		c.index = 0
	}
	c.next = c.header(c.index)
	if c.peer.Load() == parked {
		c.wakePeer()
	}
	return nil
}

func (c *Consumer) unreleasable() error {
	if c.closed.Load() {
		return ErrClosed
	}
	return errors.New("release: no slot is held")
}
