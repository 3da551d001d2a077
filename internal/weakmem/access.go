package weakmem

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/alu"
)

// A run is the lanes of an access that is carried out at once: neighbouring
// lanes at neighbouring addresses, or lanes at the same address.
type run struct {
	addr  uint64
	first int // lane at addr
	lanes int
	each  int  // bytes a lane
	same  bool // all lanes at addr
	mask  uint32
}

// bytes is the length of the run in memory.
func (r *run) bytes() uint64 {
	if r.same {
		return uint64(r.each)
	}
	return uint64(r.lanes * r.each)
}

// nextRun is the run that begins with the first lane of the mask, which is not empty.
func nextRun(mask uint32, addr *alu.Lanes, each int) run {
	first := bits.TrailingZeros32(mask)
	r := run{addr: addr[first], first: first, each: each}
	n := bits.TrailingZeros32(^(mask >> first)) // 32 if all are set
	next := r.addr
	for _, a := range addr[first : first+n] {
		if a != next {
			break
		}
		next += uint64(each)
		r.lanes++
	}
	r.mask = ^uint32(0) >> (32 - r.lanes) << first
	if r.lanes > 1 {
		return r
	}
	for m := mask; m != 0; m &= m - 1 {
		if l := bits.TrailingZeros32(m); addr[l] == r.addr {
			r.mask |= 1 << l
		}
	}
	r.same = r.mask&(r.mask-1) != 0
	r.lanes = bits.OnesCount32(r.mask)
	return r
}

// Load reads len(dst) elements of size bytes for each lane, zero-extended into
// dst. The whole vector must be aligned to its size, at most 16 bytes.
func (b *Block) Load(warp int, mask uint32, addr *alu.Lanes, size int, dst []*alu.Lanes, how How) *Fault {
	each := size * len(dst)
	var scratch [512]byte
	for mask != 0 {
		r := nextRun(mask, addr, each)
		s, f := b.at(warp, &r, 0, &how)
		if f != nil {
			return f
		}
		mask &^= r.mask
		off, n := r.addr-s.Addr, r.bytes()
		p := s.Data[off : off+n]
		if !b.memory.config.Plain {
			if f := b.note(warp, &r, s, 0, &how); f != nil {
				return f
			}
			if w := &b.warps[warp]; !how.Shared && w.buffer.covers(r.addr, n) {
				copy(scratch[:], p)
				p = scratch[:n]
				w.buffer.overlay(p, r.addr)
			}
		}
		switch {
		case how.Order != Weak:
			b.strongLoad(warp, &r, s, p, size, dst, &how)
		case r.same:
			spread(&r, p, size, dst)
		default:
			scatter(&r, p, size, dst)
		}
	}
	return nil
}

// scatter loads the registers of neighbouring lanes.
func scatter(r *run, p []byte, size int, dst []*alu.Lanes) {
	for i, d := range dst {
		to := d[r.first:][:r.lanes]
		from := p[i*size:]
		switch size {
		case 4:
			for l := range to {
				to[l] = get(from[l*r.each:], 4)
			}
		case 8:
			for l := range to {
				to[l] = get(from[l*r.each:], 8)
			}
		default:
			for l := range to {
				to[l] = get(from[l*r.each:], size)
			}
		}
	}
}

// spread loads the registers of lanes that read the same.
func spread(r *run, p []byte, size int, dst []*alu.Lanes) {
	for i, d := range dst {
		v := get(p[i*size:], size)
		for m := r.mask; m != 0; m &= m - 1 {
			d[bits.TrailingZeros32(m)] = v
		}
	}
}

// strongLoad loads the registers of a run, each element at once, and acquires.
func (b *Block) strongLoad(warp int, r *run, s *Span, p []byte, size int, dst []*alu.Lanes, how *How) {
	sync := !b.memory.config.Plain && (s.places.pages != nil || s.foreign() || b.warps[warp].buffer.covers(r.addr, r.bytes()))
	stride := r.each
	if r.same {
		stride = 0
	}
	at := 0
	for m := r.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		for i, d := range dst {
			d[l] = strongGet(p[at+i*size:], size)
			if sync {
				b.observe(warp, l, s, r.addr+uint64(at+i*size), size, d[l], how)
			}
		}
		at += stride
	}
}

// Store writes len(src) elements of size bytes for each lane, from the low bits
// of src. Of lanes at the same address the last one's value stays.
func (b *Block) Store(warp int, mask uint32, addr *alu.Lanes, size int, src []*alu.Lanes, how How) *Fault {
	each := size * len(src)
	if b.memory.config.Plain {
		return b.plainStore(warp, mask, addr, size, src, &how)
	}
	w := &b.warps[warp]
	if how.Order >= Release {
		w.buffer.push(how.Scope)
	}
	for mask != 0 {
		r := nextRun(mask, addr, each)
		if how.Order >= Release || how.Order == Relaxed && w.releases(r.mask) {
			r = r.alone() // lanes release different things
		}
		s, f := b.at(warp, &r, write, &how)
		if f != nil {
			return f
		}
		mask &^= r.mask
		if f := b.note(warp, &r, s, write, &how); f != nil {
			return f
		}
		off, n := r.addr-s.Addr, r.bytes()
		s.setWritten(off, n)
		p := b.memory.pending()
		p.span, p.addr, p.n, p.units, p.release = s, r.addr, n, all(r.addr, n), nil
		gather(&r, p.data[:n], size, src)
		if how.Order != Weak {
			p.release = b.releaseOf(warp, r.first, &how)
		}
		switch {
		case how.Shared:
			b.memory.reveal(p, p.units)
			b.memory.free = append(b.memory.free, p)
		case how.Order >= Release:
			w.buffer.drainBefore(nil, r.addr, n)
			b.memory.reveal(p, p.units)
			b.memory.free = append(b.memory.free, p)
		default:
			w.buffer.add(p)
		}
	}
	return nil
}

// alone is the run's first lane.
func (r run) alone() run {
	return run{addr: r.addr, first: r.first, lanes: 1, each: r.each, mask: 1 << r.first}
}

// pending is a store to be filled in.
func (m *Memory) pending() *pending {
	if n := len(m.free); n > 0 {
		p := m.free[n-1]
		m.free = m.free[:n-1]
		return p
	}
	return new(pending)
}

// plainStore is Store where stores are visible at once.
func (b *Block) plainStore(warp int, mask uint32, addr *alu.Lanes, size int, src []*alu.Lanes, how *How) *Fault {
	var data [512]byte
	for mask != 0 {
		r := nextRun(mask, addr, size*len(src))
		s, f := b.at(warp, &r, write, how)
		if f != nil {
			return f
		}
		mask &^= r.mask
		off, n := r.addr-s.Addr, r.bytes()
		gather(&r, data[:n], size, src)
		to := s.Data[off : off+n]
		if how.Order == Weak {
			b.memory.write(to, data[:n])
			continue
		}
		for i := 0; i < len(to); i += size {
			b.memory.write(to[i:i+size], data[i:i+size])
		}
	}
	return nil
}

// gather puts the registers of a run side by side.
func gather(r *run, p []byte, size int, src []*alu.Lanes) {
	for i, s := range src {
		if r.same {
			put(p[i*size:], size, s[31-bits.LeadingZeros32(r.mask)])
			continue
		}
		from := s[r.first:][:r.lanes]
		to := p[i*size:]
		switch size {
		case 4:
			for l, v := range from {
				put(to[l*r.each:], 4, v)
			}
		case 8:
			for l, v := range from {
				put(to[l*r.each:], 8, v)
			}
		default:
			for l, v := range from {
				put(to[l*r.each:], size, v)
			}
		}
	}
}

// Atomic replaces an element of 2, 4 or 8 bytes of each lane by f of it, lane
// by lane. f may be called again when another process was quicker. old, which
// may be nil (red), gets what was there.
func (b *Block) Atomic(warp int, mask uint32, addr *alu.Lanes, size int, old *alu.Lanes, f func(lane int, old uint64) uint64, how How) *Fault {
	if how.Order == Weak {
		how.Order = Relaxed
	}
	w := &b.warps[warp]
	plain := b.memory.config.Plain
	if how.Order >= Release && !plain {
		w.buffer.push(how.Scope)
	}
	for mask != 0 {
		r := nextRun(mask, addr, size)
		s, fault := b.at(warp, &r, write, &how)
		if fault != nil {
			return fault
		}
		mask &^= r.mask
		if !plain {
			if !how.Shared {
				w.buffer.drainBefore(nil, r.addr, r.bytes())
			}
			if f := b.note(warp, &r, s, write|atomically, &how); f != nil {
				return f
			}
			s.setWritten(r.addr-s.Addr, r.bytes())
		}
		for m := r.mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			off := addr[l] - s.Addr
			was, v := b.memory.change(s.Data[off:][:size], l, f)
			if !plain {
				b.observe(warp, l, s, addr[l], size, was, &how)
				s.replaced(b.memory, off, size, was, v, b.releaseOf(warp, l, &how))
			}
			if old != nil {
				old[l] = was
			}
		}
	}
	return nil
}

// change replaces an element by f of it.
func (m *Memory) change(p []byte, lane int, f func(lane int, old uint64) uint64) (was, v uint64) {
	for {
		was = strongGet(p, len(p))
		v = f(lane, was) & (^uint64(0) >> (64 - 8*len(p)))
		if replace(p, len(p), was, v) {
			break
		}
	}
	if v != was {
		m.changes++
	}
	return was, v
}

// at finds the span of a run, which it shortens to the lanes within it, and
// checks that the kernel may make the access.
func (b *Block) at(warp int, r *run, k kind, how *How) (*Span, *Fault) {
	if r.addr&uint64(r.each-1) != 0 {
		return nil, b.refuse(Misaligned, warp, r, k, how)
	}
	s := b.shared
	if !how.Shared {
		s = b.find(&b.warps[warp], r.addr)
		if s == nil {
			return nil, b.refuse(OutOfBounds, warp, r, k, how)
		}
	}
	if n := uint64(len(s.Data)); r.addr-s.Addr > n || r.bytes() > n-(r.addr-s.Addr) {
		var room uint64
		if off := r.addr - s.Addr; off < n {
			room = (n - off) / uint64(r.each)
		}
		if room == 0 {
			return nil, b.refuse(OutOfBounds, warp, r, k, how)
		}
		r.lanes = int(room)
		r.mask = ^uint32(0) >> (32 - r.lanes) << r.first
	}
	if s.Device != b.grid.device && !b.mayAccess(s) {
		return nil, b.refuse(NoAccess, warp, r, k, how)
	}
	return s, nil
}

// find is spanTable.find, remembering what the warp found last.
func (b *Block) find(w *warp, addr uint64) *Span {
	t := &b.memory.spans
	if w.changed != t.changed {
		w.spans, w.changed = [2]*Span{}, t.changed
	}
	if s := w.spans[0]; s != nil && addr-s.Addr < uint64(len(s.Data)) {
		return s
	}
	s := w.spans[1]
	if s == nil || addr-s.Addr >= uint64(len(s.Data)) {
		s = t.find(addr)
	}
	w.spans[0], w.spans[1] = s, w.spans[0]
	return s
}

// mayAccess asks Config.Access, once a span.
func (b *Block) mayAccess(s *Span) bool {
	if b.memory.config.Access == nil {
		return true
	}
	may, asked := b.access[s]
	if !asked {
		may = b.memory.config.Access(b.grid.device, s)
		if b.access == nil {
			b.access = map[*Span]bool{}
		}
		b.access[s] = may
	}
	return may
}

// refuse describes an access that cannot be made, by its first lane.
func (b *Block) refuse(kind FaultKind, warp int, r *run, k kind, how *How) *Fault {
	rec := record{by: &b.origin, line: int32(how.Line), warp: uint8(warp), n: uint64(r.each), kind: k}
	f := rec.fault(kind, nil, 0, r.first)
	f.Addr, f.Shared = r.addr, how.Shared
	switch s := b.memory.spans.find(r.addr); {
	case kind == Misaligned:
		f.Detail = "the address must be a multiple of the size"
	case kind == NoAccess:
		f.Where = where(s, r.addr)
		f.Detail = "the kernel's device has no access to it: enable peer access, or set it for mapped memory"
	case how.Shared:
		f.Detail = sharedBytes(len(b.shared.Data))
	default:
		f.Detail = b.memory.spans.near(r.addr)
	}
	return f
}

// note checks an access for races and unwritten memory, and remembers it.
func (b *Block) note(warp int, r *run, s *Span, k kind, how *How) *Fault {
	w := &b.warps[warp]
	rec := record{
		by: &b.origin, addr: r.addr - s.Addr, n: r.bytes(), epoch: b.epoch, time: w.time, line: int32(how.Line),
		mask: r.mask, warp: uint8(warp), first: uint8(r.first), size: uint8(r.each), kind: k, scope: how.Scope,
	}
	if r.same {
		rec.size = 0
	}
	if how.Order != Weak {
		rec.kind |= strong
	}
	if how.NonCoherent {
		rec.kind |= nonCoherent
	}
	a := access{memory: b.memory, block: b, warp: w, record: &rec}
	if k&write == 0 || k&atomically != 0 {
		if f := a.initialized(s); f != nil {
			return f
		}
	}
	a.number = b.number(w, &rec)
	if r.same && rec.kind&(write|strong) == write {
		a.clash(s)
	}
	return a.touch(s)
}

// number is the record's number in the history. What polls or reads the same
// again and again keeps its number.
func (b *Block) number(w *warp, rec *record) uint32 {
	h := &b.memory.history
	if rec.size != 0 && rec.kind&strong == 0 {
		b.memory.compact()
		return h.add(rec)
	}
	if w.compact != h.compacted {
		w.recent, w.compact = [8]uint32{}, h.compacted
	}
	slot := &w.recent[rec.line&7]
	if *slot == 0 || h.records[*slot] != *rec {
		b.memory.compact()
		if w.compact != h.compacted {
			w.recent, w.compact = [8]uint32{}, h.compacted
		}
		*slot = h.add(rec)
	}
	return *slot
}
