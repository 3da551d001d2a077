package fifo

import "slices"

// Captured is a launch that was recorded and may be carried out never, once or
// many times, each time without the ring. It owns its items, so the counters of
// a Work know nothing of it, and dropping it is all that freeing it takes.
type Captured[T any] struct{ items []T }

// Capture records a copy of the items.
func Capture[T any](items []T) Captured[T] { return Captured[T]{slices.Clone(items)} }

// Items are the recorded items, in order. The caller must not change them.
func (c Captured[T]) Items() []T { return c.items }
