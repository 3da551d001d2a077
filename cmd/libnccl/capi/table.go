package capi

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo"
)

// A Table gives handles to values. A handle looks like a pointer, is never 0, and is never
// given again, so that the use of an ended handle is found. The zero Table is empty. Every call of
// NCCL looks up a handle, from threads for several GPUs at once, so Get takes no lock and writes nothing.
type Table[T any] struct {
	What  string // for errors
	mu    sync.Mutex
	last  uintptr                                    // guarded by mu; the number of the last handle
	used  int                                        // guarded by mu; slots
	slots atomic.Pointer[[]atomic.Pointer[entry[T]]] // written with mu; number n has slot n modulo their count
}

type entry[T any] struct {
	number uintptr
	v      T
}

// A handle is firstHandle plus handleStep times its number, so that neither small numbers nor most addresses are
// taken for handles.
const (
	firstHandle = 0x1000
	handleStep  = 16
)

// Add gives a value its handle.
func (t *Table[T]) Add(v T) uintptr {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.slots.Load(); s == nil || 2*t.used >= len(*s) {
		t.grow(s)
	}
	s := *t.slots.Load()
	for t.last++; s[t.last%uintptr(len(s))].Load() != nil; t.last++ {
	}
	s[t.last%uintptr(len(s))].Store(&entry[T]{t.last, v})
	t.used++
	return firstHandle + handleStep*t.last
}

// grow doubles the slots. No two numbers that had different slots share one afterwards. mu is held.
func (t *Table[T]) grow(old *[]atomic.Pointer[entry[T]]) {
	n := 16
	if old != nil {
		n = 2 * len(*old)
	}
	slots := make([]atomic.Pointer[entry[T]], n)
	if old != nil {
		for i := range *old {
			if e := (*old)[i].Load(); e != nil {
				slots[e.number%uintptr(n)].Store(e)
			}
		}
	}
	t.slots.Store(&slots)
}

// slot is the slot and the entry of a handle, nil if there is none.
func (t *Table[T]) slot(h uintptr) (*atomic.Pointer[entry[T]], *entry[T]) {
	s := t.slots.Load()
	if s == nil || h < firstHandle || h%handleStep != 0 {
		return nil, nil
	}
	number := (h - firstHandle) / handleStep
	at := &(*s)[number%uintptr(len(*s))]
	if e := at.Load(); e != nil && e.number == number {
		return at, e
	}
	return nil, nil
}

// Get is the value of a handle.
func (t *Table[T]) Get(h uintptr) (v T, err error) {
	if _, e := t.slot(h); e != nil {
		return e.v, nil
	}
	return v, t.unknown(h)
}

// Take is Get, and the end of the handle.
func (t *Table[T]) Take(h uintptr) (v T, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, e := t.slot(h)
	if e == nil {
		return v, t.unknown(h)
	}
	at.Store(nil)
	t.used--
	return e.v, nil
}

// drop ends the handles of some values.
func (t *Table[T]) drop(which func(T) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.count() {
		if at := &(*t.slots.Load())[i]; at.Load() != nil && which(at.Load().v) {
			at.Store(nil)
			t.used--
		}
	}
}

func (t *Table[T]) unknown(h uintptr) error {
	if h == 0 {
		return fmt.Errorf("%w: the %s is null", ringo.ErrInvalid, t.What)
	}
	return fmt.Errorf("%w: %#x is no %s: it was destroyed, or never made", ringo.ErrInvalid, h, t.What)
}

// all are the values of all handles.
func (t *Table[T]) all() (list []T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.count() {
		if e := (*t.slots.Load())[i].Load(); e != nil {
			list = append(list, e.v)
		}
	}
	return list
}

// count is how many slots there are. mu is held.
func (t *Table[T]) count() int {
	if s := t.slots.Load(); s != nil {
		return len(*s)
	}
	return 0
}
