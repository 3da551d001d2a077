package weakmem

import (
	"cmp"
	"fmt"
	"math/bits"
)

// Values of Allocation.Gone: memory is there, freed by another process, or waits for Appear.
const (
	isThere = iota
	isGone
	NotYet
)

// Appear makes memory accessible whose Gone is NotYet: a stream has come to the call that allocates it. An access that
// is not after it is out of bounds, as it might have come before.
func (m *Memory) Appear(addr uint64, call string, after Clock) (Clock, error) {
	if s := m.allocations.find(addr); s != nil && s.Gone != nil {
		s.Gone.Store(isThere)
	}
	return m.live(addr, call, after)
}

// Vanish is Unmap in the order of a stream. An access that is not before it is out of bounds, as it might have come
// after.
func (m *Memory) Vanish(addr uint64, call string, after Clock) (Clock, error) {
	c, err := m.live(addr, call, after)
	if s := m.allocations.find(addr); s != nil {
		s.Ended = call
		err = cmp.Or(err, m.Unmap(addr))
	}
	return c, err
}

// live notes a call that begins or ends the life of an allocation: it conflicts with all accesses.
func (m *Memory) live(addr uint64, call string, after Clock) (Clock, error) {
	o := m.operation("call", after)
	o.origin.life = call
	s, p, err := o.access(addr, 1<<62, write)
	if err == nil {
		err = o.note(s, addr, uint64(len(p)), write)
	}
	if err != nil {
		return after, err
	}
	return o.done(), nil
}

// outlived reports an access that nothing orders behind the allocation of its memory, or before the free.
func (a *access) outlived(s *Allocation, r *record, at uint64, lane int, life string) {
	f := r.fault(OutOfBounds, s, at, lane)
	f.Detail = fmt.Sprintf("nothing orders it with %s of this memory", life)
	key := finding{kind: OutOfBounds, kernel: f.Kernel, line: f.Line, other: life, call: f.For}
	if stop := a.memory.report(key, f); stop != nil && a.fault == nil {
		a.fault = stop
	}
}

// lifetime reports whether one of two records is a call that begins or ends the life of the memory, and the other then.
func (a *access) lifetime(s *Allocation, r *record, at uint64) bool {
	switch cur := a.record; {
	case r.by.life != "" && cur.by.life != "": // whoever frees knows of the allocation, or frees at an address by chance
		return true
	case r.by.life != "":
		a.outlived(s, cur, at, bits.TrailingZeros32(cur.lanesAt(at)), r.by.life)
		return true
	case cur.by.life != "":
		a.outlived(s, r, at, bits.TrailingZeros32(r.lanesAt(at)), cur.by.life)
		return true
	}
	return false
}
