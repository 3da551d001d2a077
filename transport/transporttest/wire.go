package transporttest

import (
	"fmt"
	"sync"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
)

// A wire is a connection of two Cards. A slot is published, moved, taken and released, in this order.
type wire struct {
	limits          transport.Limits
	sends, receives *fifo.Guard

	mu       sync.Mutex
	from, to []byte // slots; to is nil before it is accepted
	flights  []flight
	dice     [8]byte
	looks    int // since the last slot was moved
	reserved int // bytes, -1: none

	published, moved, taken, released int
	finished                          bool // nothing more is published
	gone                              bool // nothing more is moved
}

// A flight is a slot that was published.
type flight struct {
	stamp transport.Stamp
	bytes int
}

// look moves a slot if it is time: after some looks, or at once if nothing more is published.
func (w *wire) look() {
	for w.to != nil && !w.gone && w.moved < w.published && w.moved-w.released < w.limits.Slots {
		w.looks++
		if w.looks <= int(w.dice[w.moved%len(w.dice)]%4) && !w.finished {
			return
		}
		f, at := w.flights[w.moved%w.limits.Slots], w.moved%w.limits.Slots*w.limits.SlotBytes
		copy(w.to[at:][:f.bytes], w.from[at:])
		w.moved, w.looks = w.moved+1, 0
	}
}

func (w *wire) end() {
	w.mu.Lock()
	w.look()
	w.gone, w.finished = true, true
	w.mu.Unlock()
}

// region is the first bytes of a slot.
func (w *wire) region(slots mem.Region, n, bytes int) mem.Region {
	return slots.Slice(n%w.limits.Slots*w.limits.SlotBytes, bytes)
}

type cardSend struct {
	*wire
	slots mem.Region
}

// ended is why nothing more is sent.
func (c cardSend) ended() error {
	if err := c.sends.Err(); err != nil {
		return err
	}
	if c.gone || c.finished {
		return fifo.ErrClosed
	}
	return nil
}

func (c cardSend) Free() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	if c.ended() != nil {
		return c.limits.Slots
	}
	return c.limits.Slots - (c.published - c.released)
}

func (c cardSend) Reserve(n int) (mem.Region, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch err := c.ended(); {
	case err != nil:
		return mem.Region{}, fmt.Errorf("card: reserve: %w", err)
	case n < 0 || n > c.limits.SlotBytes:
		return mem.Region{}, fmt.Errorf("card: reserve %d bytes of a slot of %d", n, c.limits.SlotBytes)
	case c.published-c.released == c.limits.Slots:
		return mem.Region{}, fmt.Errorf("card: reserve: no slot is free")
	}
	c.reserved = n
	return c.region(c.slots, c.published, n), nil
}

func (c cardSend) Publish(s transport.Stamp) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch err := c.ended(); {
	case err != nil:
		return fmt.Errorf("card: publish: %w", err)
	case c.reserved < 0:
		return fmt.Errorf("card: publish without reserve")
	}
	c.flights[c.published%c.limits.Slots] = flight{s, c.reserved}
	c.published, c.reserved = c.published+1, -1
	return nil
}

// Close leaves what was published to the receiver.
func (c cardSend) Close() error {
	c.mu.Lock()
	c.finished = true
	c.mu.Unlock()
	return nil
}

type cardRecv struct {
	*wire
	slots mem.Region
}

// ended is why nothing more is received.
func (c cardRecv) ended() error {
	if err := c.receives.Err(); err != nil {
		return err
	}
	if c.gone && c.taken == c.moved || c.to == nil || c.finished && c.taken == c.published {
		return fifo.ErrClosed
	}
	return nil
}

func (c cardRecv) Arrived() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	if c.ended() != nil {
		return 1
	}
	return c.moved - c.taken
}

func (c cardRecv) Next() (mem.Region, transport.Stamp, error) {
	for c.Arrived() == 0 {
		time.Sleep(100 * time.Microsecond)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ended(); err != nil {
		return mem.Region{}, transport.Stamp{}, fmt.Errorf("card: next: %w", err)
	}
	f := c.flights[c.taken%c.limits.Slots]
	c.taken++
	return c.region(c.slots, c.taken-1, f.bytes), f.stamp, nil
}

func (c cardRecv) Release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.released == c.taken {
		return fmt.Errorf("card: release without next")
	}
	c.released++
	return nil
}

// Close ends the connection for both ends.
func (c cardRecv) Close() error {
	c.mu.Lock()
	c.gone, c.to = true, nil
	c.mu.Unlock()
	return nil
}
