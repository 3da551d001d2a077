package weakmem

import (
	"fmt"
	"math/bits"
	"slices"
	"sort"
	"sync/atomic"
)

// An Allocation is memory at an address.
type Allocation struct {
	Addr    uint64
	Data    []byte
	Written []uint64       // a bit for each byte that was ever written, nil if all were; may be shared between processes
	Device  int            // -1 for host memory
	Foreign bool           // others write it too, unseen: another process, or the host through Data; host memory always is
	Name    string         // for reports
	Gone    *atomic.Uint32 // not 0 when the process that owns the memory has freed it, or before Appear; may be nil
	Ended   string         // the call that freed the memory, see Memory.Vanish
	Trail   *Trail         // of memory that processes share; may be nil
	// Hole reports whether nobody ever wrote n bytes from off, for which the system has no pages; nil if nobody knows.
	Hole func(off, n uint64) bool
	// Physical is the number of the memory, not 0 if there may be another Allocation of it, at another address: an alias.
	// All aliases begin at the memory's first byte. What is known of the memory stays until Memory.Forget.
	Physical uint64

	parts  []Part // all that may be accessed, in order; nil: everything
	block  *Block // whose shared memory it is; nil: it has addresses of its own
	memory *physical
	base   uint64 // of the first byte in physical memory
	alias  uint16 // of Addr, see physical.addrs
}

// end is the address after the last byte.
func (s *Allocation) end() uint64 { return s.Addr + uint64(len(s.Data)) }

// foreign reports whether the allocation may hold stores that Memory has not seen.
func (s *Allocation) foreign() bool {
	return s.Foreign || s.Device < 0 || s.memory != nil && s.memory.exposed
}

// gone reports whether the owner has freed the memory: an access is one of freed memory, although it is still mapped
// here.
func (s *Allocation) gone() bool { return s.Gone != nil && s.Gone.Load() != 0 }

// Expose says that others, of whom Memory does not hear, may write n bytes from off, by whatever address: these count
// as written.
func (s *Allocation) Expose(off, n uint64) {
	s.Foreign = true
	if s.memory != nil {
		s.memory.exposed = true
	}
	s.setWritten(off, n)
}

// setWritten notes that n bytes from off were written.
func (s *Allocation) setWritten(off, n uint64) {
	if s.Written == nil {
		return
	}
	for i, end := off, off+n; i < end; {
		w, first := i/64, i%64
		count := min(64-first, end-i)
		bits := ^uint64(0) >> (64 - count) << first
		if have := s.Written[w]; have&bits != bits {
			atomic.OrUint64(&s.Written[w], bits)
		}
		i += count
	}
}

// copyWritten notes that n bytes from off are a copy.
func (s *Allocation) copyWritten(off uint64, src *Allocation, from, n uint64) {
	if s.Written == nil {
		return
	}
	for n > 0 {
		bad, found := src.unwritten(from, n)
		if !found {
			return // the copy has marked all as written
		}
		skip := bad - from
		w := off + skip
		atomic.AndUint64(&s.Written[w/64], ^(1 << (w % 64)))
		off, from, n = off+skip+1, bad+1, n-skip-1
	}
}

// unwritten finds the first of n bytes from off that nothing wrote.
func (s *Allocation) unwritten(off, n uint64) (uint64, bool) {
	if s.Written == nil {
		return 0, false
	}
	for i, end := off, off+n; i < end; {
		w, first := i/64, i%64
		count := min(64-first, end-i)
		if missing := ^s.Written[w] >> first << (64 - count); missing != 0 {
			missing >>= 64 - count
			return i + uint64(bits.TrailingZeros64(missing)), true
		}
		i += count
	}
	return 0, false
}

// freedKept is how many unmapped allocations are remembered for reports.
const freedKept = 256

// allocationTable finds allocations by address.
type allocationTable struct {
	sorted  []*Allocation // by Addr, without overlap
	freed   []*Allocation // without their Data, the oldest first
	changed int           // counts changes, for caches
}

// find returns the allocation that holds addr, or nil.
func (t *allocationTable) find(addr uint64) *Allocation {
	lo, hi := 0, len(t.sorted)
	for lo < hi {
		if mid := (lo + hi) / 2; t.sorted[mid].end() <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(t.sorted) && t.sorted[lo].Addr <= addr {
		return t.sorted[lo]
	}
	return nil
}

// Map adds memory. It must not overlap other allocations, nor be empty.
func (m *Memory) Map(s Allocation) error {
	if len(s.Data) == 0 {
		return fmt.Errorf("weakmem: mapping %q at %#x: no bytes", s.Name, s.Addr)
	}
	if s.Written != nil && len(s.Written)*64 < len(s.Data) {
		return fmt.Errorf("weakmem: mapping %q at %#x: %d bytes need %d words of Written, got %d", s.Name, s.Addr,
			len(s.Data), (len(s.Data)+63)/64, len(s.Written))
	}
	t := &m.allocations
	i := sort.Search(len(t.sorted), func(i int) bool { return t.sorted[i].end() > s.Addr })
	if i < len(t.sorted) && t.sorted[i].Addr < s.end() {
		return fmt.Errorf("weakmem: mapping %q at %#x: overlaps %q at %#x", s.Name, s.Addr, t.sorted[i].Name,
			t.sorted[i].Addr)
	}
	if err := m.attach(&s); err != nil {
		return err
	}
	t.sorted = slices.Insert(t.sorted, i, &s)
	t.freed = slices.DeleteFunc(t.freed, func(f *Allocation) bool { return f.Addr < s.end() && s.Addr < f.end() })
	t.changed++
	return nil
}

// Unmap removes the allocation that begins at addr, after all pending stores became
// visible. Later accesses there are reported as freed memory; by the memory's other addresses they are not.
func (m *Memory) Unmap(addr uint64) error {
	t := &m.allocations
	s := t.find(addr)
	if s == nil || s.Addr != addr {
		return fmt.Errorf("weakmem: nothing is mapped at %#x", addr)
	}
	m.settle()
	m.stuck = slices.DeleteFunc(m.stuck, func(b stuckBit) bool { return b.allocation == s })
	i := slices.Index(t.sorted, s)
	t.sorted = slices.Delete(t.sorted, i, i+1)
	if len(t.freed) == freedKept {
		t.freed = slices.Delete(t.freed, 0, 1)
	}
	t.freed = append(t.freed, s)
	t.changed++
	return nil
}

// Find returns the allocation that holds addr.
func (m *Memory) Find(addr uint64) (*Allocation, bool) {
	s := m.allocations.find(addr)
	return s, s != nil
}

const (
	nullPage = 1 << 12 // addresses that come from null pointers
	farAway  = 1 << 32 // a distance at which the nearest allocation says nothing
)

// near describes the allocation at or next to an address that is not mapped.
func (t *allocationTable) near(addr uint64) string {
	for _, s := range slices.Backward(t.freed) {
		if s.Addr <= addr && addr < s.end() {
			if s.Ended != "" {
				return fmt.Sprintf("%s+%#x, freed by %s", s.Name, addr-s.Addr, s.Ended)
			}
			return fmt.Sprintf("%s+%#x, freed", s.Name, addr-s.Addr)
		}
	}
	i := sort.Search(len(t.sorted), func(i int) bool { return t.sorted[i].end() > addr })
	var after, before uint64 = 1 << 63, 1 << 63
	if i > 0 {
		after = addr - t.sorted[i-1].end()
	}
	if i < len(t.sorted) && t.sorted[i].Addr > addr {
		before = t.sorted[i].Addr - addr
	}
	switch {
	case addr < nullPage:
		return "a null pointer"
	case i < len(t.sorted) && t.sorted[i].Addr <= addr:
		s := t.sorted[i]
		if s.Gone != nil && s.Gone.Load() == NotYet {
			return fmt.Sprintf("%s+%#x, which is not there before its stream comes to its allocation", s.Name, addr-s.Addr)
		}
		if s.gone() {
			return fmt.Sprintf("%s+%#x, freed by the process whose memory it is", s.Name, addr-s.Addr)
		}
		return fmt.Sprintf("reaches beyond the end of %s (%d bytes)", s.Name, len(s.Data))
	case min(after, before) > farAway:
		return "nothing is mapped near it"
	case after == 0:
		s := t.sorted[i-1]
		return fmt.Sprintf("just after the end of %s (%d bytes at %#x)", s.Name, len(s.Data), s.Addr)
	case after <= before:
		s := t.sorted[i-1]
		return fmt.Sprintf("%d bytes after the end of %s (%d bytes at %#x)", after, s.Name, len(s.Data), s.Addr)
	}
	s := t.sorted[i]
	return fmt.Sprintf("%d bytes before %s (%d bytes at %#x)", before, s.Name, len(s.Data), s.Addr)
}
