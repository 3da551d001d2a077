package weakmem

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/decision"
)

// Load reads len(dst) elements of size bytes for each lane, zero-extended into
// dst. The whole vector must be aligned to its size, at most 16 bytes.
func (b *Block) Load(warp int, mask uint32, addr *alu.Lanes, size int, dst []*alu.Lanes, how How) *Fault {
	how.element = uint8(size)
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
		if b.tears(s, n, &how) {
			if f := b.loadWords(warp, &r, addr, size, dst, how); f != nil {
				return f
			}
			continue
		}
		if b.memory.late > 0 {
			b.warps[warp].buffer.carryOut(s.base+off, n)
		}
		p := s.Data[off : off+n]
		if n >= lineBytes && b.whole(s, &how) { // first of all: what follows may read in any order
			backward(scratch[:n], p, 8)
			p = scratch[:n]
		}
		at := b.memory.past.now // when the load happens
		if !b.memory.config.Plain {
			if f := b.note(warp, &r, s, 0, &how); f != nil {
				return f
			}
			w, home := &b.warps[warp], s.base+off
			if how.Order != Weak && at > 0 && !s.foreign() {
				at = b.asOf(warp, &r, home, &how)
			}
			if old := at < b.memory.past.now; old || w.buffer.covers(home, n) {
				if how.Order == Weak {
					copy(scratch[:], p)
				} else {
					backward(scratch[:n], p, min(8, r.each))
				}
				p = scratch[:n]
				if old {
					b.memory.rollBack(p, home, at)
				}
				w.buffer.overlay(p, home)
			}
		}
		switch {
		case how.Order != Weak:
			b.strongLoad(warp, &r, s, p, size, dst, at, &how)
		case r.same:
			spread(&r, p, size, dst)
		default:
			scatter(&r, p, size, dst)
		}
	}
	return nil
}

// strongLoad loads the registers of a run, each element at once, and acquires.
func (b *Block) strongLoad(warp int, r *run, s *Allocation, p []byte, size int, dst []*alu.Lanes, when uint64,
	how *How) {
	sync := !b.memory.config.Plain &&
		(s.memory.sites.pages != nil || s.foreign() || b.warps[warp].buffer.covers(s.base+r.addr-s.Addr, r.bytes()))
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
				b.observe(warp, l, s, r.addr+uint64(at+i*size), size, d[l], when, how)
			}
		}
		at += stride
	}
}

// Store writes len(src) elements of size bytes for each lane, from the low bits
// of src. Of lanes at the same address the last one's value stays.
func (b *Block) Store(warp int, mask uint32, addr *alu.Lanes, size int, src []*alu.Lanes, how How) *Fault {
	how.element = uint8(size)
	each := size * len(src)
	if b.memory.config.Plain {
		return b.plainStore(warp, mask, addr, size, src, &how)
	}
	w := &b.warps[warp]
	if how.Order >= Release {
		w.buffer.order(how.Scope)
		b.memory.Released()
	}
	w.stored++
	w.strongs++
	for mask != 0 {
		r := nextRun(mask, addr, each)
		if how.Order >= Release || how.Order == Relaxed && w.releases(r.mask) {
			r = r.firstLane() // lanes release different things
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
		if how.Shade != nil {
			how.Shade.forget(&r, s, size)
		}
		p := b.memory.pending()
		p.allocation, p.addr, p.n, p.units, p.release = s, s.base+off, n, all(r.addr, n), nil
		p.by, p.warp, p.strong, p.shared = &b.origin, uint8(warp), how.Order != Weak, how.Shared
		p.from, p.view, p.lane, p.serial = &w.buffer, w.knew(), uint8(r.first), w.strongs
		p.whole, p.tears = b.whole(s, &how), b.tears(s, n, &how)
		gather(&r, p.data[:n], size, src)
		if how.Order != Weak {
			p.release = b.releaseOf(warp, r.first, p.addr, &how)
		}
		if how.Shared && how.Order == Weak { // who looks at it early is found as a race
			w.buffer.drainBefore(nil, p.addr, n)
			b.memory.reveal(p, p.units)
			b.memory.release(p)
		} else {
			b.memory.delay(p, uint8(warp), int32(how.Line), storeNumber(w.stored, r.first))
			w.buffer.add(p)
		}
	}
	return nil
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

// Atomic replaces an element of 2, 4 or 8 bytes of each lane by f of it, lane
// by lane. f may be called again when another process was quicker. old, which
// may be nil (red), gets the old values. With how.Late f is called until the grid's end.
func (b *Block) Atomic(warp int, mask uint32, addr *alu.Lanes, size int, old *alu.Lanes,
	f func(lane int, old uint64) uint64, how How) *Fault {
	how.element = uint8(size)
	if how.Order == Weak {
		how.Order = Relaxed
	}
	w := &b.warps[warp]
	w.strongs++
	plain := b.memory.config.Plain
	if how.Order >= Release && !plain {
		w.buffer.push(how.Scope)
		b.memory.Released()
	}
	for mask != 0 {
		r := nextRun(mask, addr, size)
		s, fault := b.at(warp, &r, write, &how)
		if fault != nil {
			return fault
		}
		mask &^= r.mask
		if !plain {
			w.buffer.drainBefore(nil, s.base+r.addr-s.Addr, r.bytes())
			if f := b.note(warp, &r, s, write|atomically, &how); f != nil {
				return f
			}
			s.setWritten(r.addr-s.Addr, r.bytes())
			if how.Late = how.Late && old == nil; !how.Late {
				w.buffer.settleFences()
			}
		}
		for m := r.mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			off := addr[l] - s.Addr
			if how.Late {
				b.later(warp, l, s, off, size, func(old uint64) uint64 { return f(l, old) }, &how)
				continue
			}
			if !plain && b.memory.config.OldLoads {
				b.memory.remember(s, off, uint64(size), &b.origin, seenBy{warp: uint8(warp), device: b.grid.device})
				w.buffer.shown = b.memory.past.now
			}
			was, v := b.memory.change(s.Data[off:][:size], l, f)
			if !plain {
				b.observe(warp, l, s, addr[l], size, was, b.memory.past.now, &how)
				s.replaced(b.memory, off, size, was, v, b.releaseOf(warp, l, s.base+off, &how),
					signal{&b.origin, w.strongs, uint8(warp), uint8(l)}, w.knew())
			}
			if old != nil {
				old[l] = was
			}
		}
	}
	return nil
}

// Late reports, at random under the seed, whether an atomic operation that returns nothing is to become visible late,
// as stores do: then its How says so.
func (b *Block) Late(warp int, how How) bool {
	m := b.memory
	if m.config.Plain || how.Order > Relaxed {
		return false
	}
	w := &b.warps[warp]
	w.stored++
	if book := m.config.Book; book.Follows() {
		for lane := range 32 {
			if book.Has(decision.Hold, b.origin.decider(uint8(warp)), storeNumber(w.stored, lane)) {
				return true
			}
		}
		return false
	}
	return m.rand()>>40&3 == 0
}

// later puts an atomic operation into a warp's buffer.
func (b *Block) later(warp, lane int, s *Allocation, off uint64, size int, f func(old uint64) uint64, how *How) {
	p := b.memory.pending()
	p.allocation, p.addr, p.n, p.units = s, s.base+off, uint64(size), all(s.base+off, uint64(size))
	p.release, p.by, p.change = b.releaseOf(warp, lane, p.addr, how), &b.origin, f
	p.warp, p.strong, p.shared, p.whole, p.tears = uint8(warp), true, how.Shared, false, false
	w := &b.warps[warp]
	p.from, p.view, p.lane, p.serial = &w.buffer, w.knew(), uint8(lane), w.strongs
	b.memory.late++
	b.memory.delay(p, uint8(warp), int32(how.Line), storeNumber(w.stored, lane))
	w.buffer.add(p)
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
		m.hold()
	}
	return was, v
}
