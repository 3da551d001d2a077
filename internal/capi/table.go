package capi

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ringo-go/ringo"
)

// A table gives handles to values. A handle looks like a pointer, is never 0, and is never
// given again, so that one which is used after its end is found. The zero table is empty.
type table[T any] struct {
	what string // for errors
	mu   sync.RWMutex
	m    map[uintptr]T // guarded by mu
	last uintptr       // guarded by mu
}

// add gives a value its handle.
func (t *table[T]) add(v T) uintptr {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[uintptr]T{}
	}
	t.last += 16
	t.m[firstHandle+t.last] = v
	return firstHandle + t.last
}

// firstHandle is no address that a program may have by chance: the first page is never mapped.
const firstHandle = 0x1000

// get is the value of a handle.
func (t *table[T]) get(h uintptr) (T, error) {
	t.mu.RLock()
	v, ok := t.m[h]
	t.mu.RUnlock()
	if !ok {
		return v, t.unknown(h)
	}
	return v, nil
}

// take is get, and the end of the handle.
func (t *table[T]) take(h uintptr) (T, error) {
	t.mu.Lock()
	v, ok := t.m[h]
	delete(t.m, h)
	t.mu.Unlock()
	if !ok {
		return v, t.unknown(h)
	}
	return v, nil
}

// drop ends the handles of some values.
func (t *table[T]) drop(which func(T) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.m, func(_ uintptr, v T) bool { return which(v) })
}

func (t *table[T]) unknown(h uintptr) error {
	if h == 0 {
		return fmt.Errorf("%w: the %s is null", ringo.ErrInvalid, t.what)
	}
	return fmt.Errorf("%w: %#x is no %s: it was destroyed, or never made", ringo.ErrInvalid, h, t.what)
}

// all are the values of all handles.
func (t *table[T]) all() []T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.m))
}
