package weakmem

import (
	"fmt"
	"slices"
	"sort"
)

// A Span is memory at an address.
type Span struct {
	Addr    uint64
	Data    []byte
	Written []uint64 // a bit for each byte that was ever written, nil if all were; may be shared between processes
	Device  int      // -1 for host memory
	Foreign bool     // others write it too, unseen: another process, or the host through Data; host memory always is
	Name    string   // for reports
}

// end is the address after the last byte.
func (s *Span) end() uint64 { return s.Addr + uint64(len(s.Data)) }

// spanTable finds spans by address.
type spanTable struct {
	sorted []*Span // by Addr, without overlap
}

// find returns the span that holds addr, or nil.
func (t *spanTable) find(addr uint64) *Span {
	i := sort.Search(len(t.sorted), func(i int) bool { return t.sorted[i].end() > addr })
	if i < len(t.sorted) && t.sorted[i].Addr <= addr {
		return t.sorted[i]
	}
	return nil
}

// Map adds memory. It must not overlap other spans, nor be empty.
func (m *Memory) Map(s Span) error {
	if len(s.Data) == 0 {
		return fmt.Errorf("weakmem: mapping %q at %#x: no bytes", s.Name, s.Addr)
	}
	if s.Written != nil && len(s.Written)*64 < len(s.Data) {
		return fmt.Errorf("weakmem: mapping %q at %#x: %d bytes need %d words of Written, got %d", s.Name, s.Addr, len(s.Data), (len(s.Data)+63)/64, len(s.Written))
	}
	t := &m.spans
	i := sort.Search(len(t.sorted), func(i int) bool { return t.sorted[i].end() > s.Addr })
	if i < len(t.sorted) && t.sorted[i].Addr < s.end() {
		return fmt.Errorf("weakmem: mapping %q at %#x: overlaps %q at %#x", s.Name, s.Addr, t.sorted[i].Name, t.sorted[i].Addr)
	}
	t.sorted = slices.Insert(t.sorted, i, &s)
	return nil
}

// Unmap removes the span that begins at addr. Later accesses are reported as
// freed memory.
func (m *Memory) Unmap(addr uint64) error {
	t := &m.spans
	i := sort.Search(len(t.sorted), func(i int) bool { return t.sorted[i].Addr >= addr })
	if i == len(t.sorted) || t.sorted[i].Addr != addr {
		return fmt.Errorf("weakmem: nothing is mapped at %#x", addr)
	}
	t.sorted = slices.Delete(t.sorted, i, i+1)
	return nil
}

// Find returns the span that holds addr.
func (m *Memory) Find(addr uint64) (*Span, bool) {
	s := m.spans.find(addr)
	return s, s != nil
}
