package weakmem

import (
	"math/bits"
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// A Shade is what registers hold of bytes that nobody wrote: a load reports it, and a store takes it along. Memory
// remembers whole bytes: one of which some bits were written counts as written.
type Shade struct {
	Regs  []*alu.Lanes // of the access
	Mask  uint32       // threads that have some
	Wide  uint32       // of these, those who loaded from more unwritten bytes in a row than padding has
	Bits  []alu.Lanes  // of each register: those of which nobody wrote the byte
	Fault *Fault       // describes the load of one of them

	first int // register of a part of the load
}

// mostPadding is more bytes than padding has in structs, but for those that ask for an alignment of their own. So many
// in a row, or the whole memory, nobody meant to copy.
const mostPadding = 32

// note notes a load of n unwritten bytes by a thread, of elements of a size.
func (h *Shade) note(s *Allocation, off uint64, lane, n, size int) {
	if h.Mask == 0 {
		h.Bits, h.Wide = h.Bits[:0], 0
	}
	h.Mask |= 1 << lane
	if s.blank(off, uint64(n)) {
		h.Wide |= 1 << lane
	}
	for i := h.first; i < h.first+n/size; i++ {
		if i >= len(h.Bits) {
			h.Bits = append(h.Bits, make([]alu.Lanes, i+1-len(h.Bits))...)
		}
		var b uint64
		for k := range size {
			if !s.wrote(off) {
				b |= 0xff << (8 * k)
			}
			off++
		}
		h.Bits[i][lane] = b
	}
}

// wrote reports whether somebody wrote a byte.
func (s *Allocation) wrote(at uint64) bool {
	return s.Written == nil || s.Written[at/64]>>(at%64)&1 != 0
}

// blank reports whether n bytes from off lie among so many unwritten ones as padding never has, or are all there are.
func (s *Allocation) blank(off, n uint64) bool {
	first, end := uint64(0), s.limit(s.Addr+off)
	for _, p := range s.parts {
		if off >= p.From && off < p.To {
			first = p.From
		}
	}
	lo, hi := off, off
	for hi < end && hi < off+n+mostPadding && !s.wrote(hi) {
		hi++
	}
	for lo > first && hi-lo < mostPadding && !s.wrote(lo-1) {
		lo--
	}
	return hi >= off+n && (hi-lo >= mostPadding || lo == first && hi == end)
}

// shade notes what a run of a load reads of bytes that nobody wrote, the first of them at an offset.
func (b *Block) shade(a *access, r *run, s *Allocation, at uint64, size int, h *Shade) {
	if h.Mask == 0 {
		h.Fault = a.unwrittenAt(s, at)
	}
	for m := r.mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		off := r.addr - s.Addr
		if !r.same {
			off += uint64((lane - r.first) * r.each)
		}
		if _, bad := s.unwritten(off, uint64(r.each)); bad {
			h.note(s, off, lane, r.each, size)
		}
	}
}

// forget makes bytes unwritten again into which threads of a run stored what nobody wrote.
func (h *Shade) forget(r *run, s *Allocation, size int) {
	if s.Written == nil {
		return
	}
	for m := r.mask & h.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		off := r.addr - s.Addr
		if !r.same {
			off += uint64((lane - r.first) * r.each)
		}
		for i := range h.Bits {
			for k := range size {
				if h.Bits[i][lane]>>(8*k)&0xff == 0xff {
					at := off + uint64(i*size+k)
					atomic.AndUint64(&s.Written[at/64], ^(1 << (at % 64)))
				}
			}
		}
	}
}

// unwrittenAt describes the access of a byte that nobody wrote.
func (a *access) unwrittenAt(s *Allocation, at uint64) *Fault {
	f := a.record.fault(Uninitialized, s, at, bits.TrailingZeros32(a.record.lanesAt(at)))
	f.Shared = s.block != nil
	f.Detail = "nothing wrote it since it was allocated"
	return f
}

// Undefined reports the load of a Shade, because its value decides something. It returns the fault if the kernel is to
// stop.
func (b *Block) Undefined(load *Fault, why string) *Fault {
	f := *load
	f.Detail += "; " + why
	return b.memory.report(finding{kind: Uninitialized, kernel: f.Kernel, line: f.Line, shared: f.Shared}, &f)
}

// toHost reports a copy to the host of bytes that nobody wrote, unless they may be padding: fewer than mostPadding in a
// row and not all, or the ends of all structs of an array.
func (o *operation) toHost(s *Allocation, from, n uint64) error {
	if s.Written == nil || n == 0 {
		return nil
	}
	var first, length, ends uint64
	found, padding := 0, true
	for at, end := from, from+n; at < end; {
		lo, bad := s.unwritten(at, end-at)
		if !bad {
			break
		}
		hi := lo + 1
		for hi < end && !s.wrote(hi) {
			hi++
		}
		at = hi
		if hi-lo < mostPadding && hi-lo < n {
			continue
		}
		if found == 0 {
			first, length, ends = lo, hi-lo, uint64(1)<<bits.Len64(hi-lo)
		}
		found++
		padding = padding && hi-lo == length && hi%ends == 0 && ends <= mostAlign
	}
	if found == 0 || padding && found > 1 {
		return nil
	}
	r := record{by: &o.origin, addr: from, n: n, mask: 1}
	a := access{memory: o.memory, record: &r}
	f := a.unwrittenAt(s, first)
	f.Detail += ", and it is copied to the host"
	if o.memory.For != nil {
		f.For = o.memory.For()
	}
	if stop := o.memory.report(finding{kind: Uninitialized, kernel: f.Kernel, call: f.For}, f); stop != nil {
		return stop
	}
	return nil
}

// mostAlign is the largest alignment that structs ask for.
const mostAlign = 256
