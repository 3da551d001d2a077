package weakmem

import (
	"math/bits"
	"slices"
)

// How many pending stores a buffer holds before the oldest has to go.
const (
	warpPending   = 8
	blockPending  = 32
	devicePending = 64
)

// A buffer holds stores that only some threads see: those of a warp, of a
// block, of a cluster of several, or of a device. A barrier moves a warp's stores to the block; a fence moves
// them as far as its scope; Tick takes some to memory, in any order.
//
// A fence may lie among the stores: what is before it becomes visible to the threads of its scope before what is
// behind it leaves the buffer, and not earlier.
//
// Of stores to shared memory only a warp's buffer holds some: all of the block see the others.
//
// The lanes of a warp see each other's stores early. That hides no fault: lanes that
// use each other's data without SyncWarp are found as races.
type buffer struct {
	memory *Memory
	up     *buffer // of more threads; its stores are older where they overlap
	limit  int
	beyond Scope      // the least that has threads who do not see these stores
	stores []*pending // the oldest first
	fences int        // how many of stores are fences
	shown  uint64     // the time at which the last one of those that were here became visible to all: see past
	lo, hi uint64     // all stores are within, in physical memory
	site   int        // 1 + index in Memory.dirty, 0 when empty
}

// pending is a store, of one thread or of neighbouring lanes, to bytes without
// gaps. It becomes visible in units of 8 bytes, each at once. Or it is a fence, which has no bytes.
type pending struct {
	allocation *Allocation
	addr       uint64 // in physical memory
	n          uint64
	units      uint64 // still to be seen: a bit for each 8 bytes from addr &^ 7
	release    *release
	by         *origin
	strong     bool
	whole      bool // its lines become visible at once
	tears      bool // its words become visible one by one (Config.Lines)
	far        bool // in the buffer of a device
	near       bool // it was in the buffer of a block, or of more threads
	fence      bool
	shared     bool    // to shared memory
	scope      Scope   // of a fence
	warp, lane uint8   // of by
	serial     uint32  // of warp.strongs
	from       *buffer // the warp's; nil: none
	view       uint64  // the time of what the warp knew: see warp.knew
	delay      delay
	// change is what a late atomic operation makes of an element, nil for a store: see How.Late.
	change func(old uint64) uint64
	data   [512]byte
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

// all is the units of a store of n bytes at addr.
func all(addr, n uint64) uint64 { return ^uint64(0) >> (64 - (addr&7+n+7)/8) }

func (p *pending) overlaps(addr, n uint64) bool { return p.addr < addr+n && addr < p.addr+p.n }

// unit is the range of a unit's bytes in data.
func (p *pending) unit(i int) (from, to uint64) {
	at := p.addr&^7 + 8*uint64(i)
	return max(at, p.addr) - p.addr, min(at+8, p.addr+p.n) - p.addr
}

// add takes a store. The oldest become visible to all if there is no room.
func (b *buffer) add(p *pending) {
	if len(b.stores) == b.limit {
		b.drain(b.stores[0], ^uint64(0))
	}
	if len(b.stores) == 0 {
		b.lo, b.hi = ^uint64(0), 0
		b.memory.dirty = append(b.memory.dirty, b)
		b.site = len(b.memory.dirty)
	}
	if p.fence {
		b.fences++
	} else {
		b.lo, b.hi = min(b.lo, p.addr), max(b.hi, p.addr+p.n)
	}
	b.stores = append(b.stores, p)
}

// order puts a fence behind the stores here, if they or those above have to be ordered at all.
func (b *buffer) order(s Scope) {
	for up := b; ; up = up.up {
		if up == nil || up.beyond > s {
			return
		}
		if len(up.stores) > 0 {
			break
		}
	}
	if n := len(b.stores); n > 0 && b.stores[n-1].fence {
		b.stores[n-1].scope = max(b.stores[n-1].scope, s)
		return
	}
	p := b.memory.pending()
	p.fence, p.scope, p.addr, p.n, p.units, p.delay = true, s, 0, 0, 0, delay{}
	b.add(p)
}

// settleFences makes visible what fences here and above have to come before anything else, to the threads of each.
func (b *buffer) settleFences() {
	for ; b != nil; b = b.up {
		b.settleFencesBefore(len(b.stores))
	}
}

// settleFencesBefore does so for the fences among the first n stores here.
func (b *buffer) settleFencesBefore(n int) {
	if b.fences == 0 {
		return
	}
	for n--; n >= 0 && !b.stores[n].fence; n-- {
	}
	if n < 0 {
		return
	}
	f := b.stores[n]
	s := f.scope
	for _, p := range b.stores[:n] {
		if p.fence {
			s = max(s, p.scope)
		}
	}
	for b.stores[0] != f {
		b.moveFirst()
	}
	b.moveFirst()
	if b.up != nil {
		b.up.push(s)
	}
}

// moveFirst makes the oldest store visible one level further.
func (b *buffer) moveFirst() {
	p := b.stores[0]
	switch {
	case p.fence && (b.up == nil || b.up.beyond > p.scope):
		b.remove(0)
		b.memory.release(p)
	case b.up == nil || p.shared:
		b.drain(p, ^uint64(0))
	default:
		b.remove(0)
		p.near, p.far = true, b.up.up == nil
		b.up.add(p)
	}
}

// release takes a store back that is visible to all, for another one.
func (m *Memory) release(p *pending) {
	p.change, p.from, p.fence, p.shared, p.near, p.far = nil, nil, false, false, false, false
	m.free = append(m.free, p)
}

// remove forgets a store, which is drained.
func (b *buffer) remove(i int) {
	if b.stores[i].fence {
		b.fences--
	}
	copy(b.stores[i:], b.stores[i+1:])
	b.stores[len(b.stores)-1] = nil
	b.stores = b.stores[:len(b.stores)-1]
	if len(b.stores) == 0 {
		b.clean()
	}
}

// clean takes an empty buffer off the list of those that are not.
func (b *buffer) clean() {
	m, i := b.memory, b.site-1
	last := len(m.dirty) - 1
	m.dirty[i] = m.dirty[last]
	m.dirty[i].site = i + 1
	m.dirty = m.dirty[:last]
	b.site = 0
}

// covers reports whether this buffer or one above may hold some of the bytes.
func (b *buffer) covers(addr, n uint64) bool {
	for ; b != nil; b = b.up {
		if len(b.stores) > 0 && b.lo < addr+n && addr < b.hi {
			return true
		}
	}
	return false
}

// overlay puts pending stores over dst, memory's bytes at addr.
func (b *buffer) overlay(dst []byte, addr uint64) {
	if b.up != nil {
		b.up.overlay(dst, addr)
	}
	n := uint64(len(dst))
	if len(b.stores) == 0 || b.hi <= addr || addr+n <= b.lo {
		return
	}
	for _, p := range b.stores {
		if !p.overlaps(addr, n) {
			continue
		}
		for u := p.units; u != 0; u &= u - 1 {
			from, to := p.unit(bits.TrailingZeros64(u))
			from, to = max(p.addr+from, addr), min(p.addr+to, addr+n)
			if from < to {
				copy(dst[from-addr:], p.data[from-p.addr:to-p.addr])
			}
		}
	}
}

// newest is the last pending store to some of the bytes that this buffer's threads see.
func (b *buffer) newest(addr, n uint64) *pending {
	for ; b != nil; b = b.up {
		if len(b.stores) == 0 || b.hi <= addr || addr+n <= b.lo {
			continue
		}
		for _, p := range slices.Backward(b.stores) {
			if p.overlaps(addr, n) && p.units>>((addr-p.addr&^7)/8)&1 != 0 {
				return p
			}
		}
	}
	return nil
}

// drain makes some units of a store visible to all, after older stores to the
// same bytes and what a fence orders before it. A fence is done with when what is before it is.
func (b *buffer) drain(p *pending, units uint64) {
	if p.fence {
		b.settleFencesBefore(slices.Index(b.stores, p) + 1)
		return
	}
	units &= p.units
	if units == 0 {
		return
	}
	if b.fences > 0 {
		b.settleFencesBefore(slices.Index(b.stores, p))
	}
	if !p.shared {
		b.up.settleFences()
	}
	if p.whole {
		units |= p.lines(units) & p.units
	}
	lo, _ := p.unit(bits.TrailingZeros64(units))
	_, hi := p.unit(63 - bits.LeadingZeros64(units))
	b.drainBefore(p, p.addr+lo, hi-lo)
	b.memory.reveal(p, units)
	for up := p.from; up != nil && up != b; up = up.up {
		up.shown = b.memory.past.now
	}
	b.shown = b.memory.past.now
	p.units &^= units
	if b.memory.config.Book != nil {
		b.memory.revealed(p, units)
	}
	if p.units != 0 {
		return
	}
	for i := range b.stores {
		if b.stores[i] == p {
			b.remove(i)
			break
		}
	}
	b.memory.release(p)
}

// carryOut carries out the late atomic operations on some of the bytes, here and above: whoever sees one sees it
// in the order in which all see it.
func (b *buffer) carryOut(addr, n uint64) {
	for ; b != nil; b = b.up {
		for i := 0; i < len(b.stores); {
			if p := b.stores[i]; p.change != nil && p.overlaps(addr, n) {
				b.drain(p, ^uint64(0))
				i = 0 // it may have removed others too
			} else {
				i++
			}
		}
	}
}

// drainBefore makes visible the stores that overlap the bytes and are older than p, or
// all that overlap if p is nil, here and above.
func (b *buffer) drainBefore(p *pending, addr, n uint64) {
	if b.up != nil {
		b.up.drainBefore(nil, addr, n)
	}
	if len(b.stores) == 0 || b.hi <= addr || addr+n <= b.lo {
		return
	}
	for i := 0; i < len(b.stores) && b.stores[i] != p; {
		if q := b.stores[i]; q.overlaps(addr, n) {
			b.drain(q, ^uint64(0))
			i = 0 // it may have removed others too
		} else {
			i++
		}
	}
}

// push makes all stores of a warp visible to the threads of the scope, and those
// stores of others too that the warp may have seen.
func (b *buffer) push(s Scope) {
	for ; b != nil && b.beyond <= s; b = b.up {
		b.moveUp()
	}
}

// moveUp makes all stores here visible one level further.
func (b *buffer) moveUp() {
	for len(b.stores) > 0 {
		b.moveFirst()
	}
}

func (p *pending) signal() signal { return signal{p.by, p.serial, p.warp, p.lane} }

// when is the time since which all see what is before the store for those who acquire it.
func (p *pending) when() uint64 { return max(p.view, p.from.lastShown()) }

// lastShown is the last time at which a store that was here or above became visible to all.
func (b *buffer) lastShown() (at uint64) {
	for ; b != nil; b = b.up {
		at = max(at, b.shown)
	}
	return at
}

// drainAll makes all stores here visible to all, without a time at which only some see them.
func (b *buffer) drainAll() {
	for len(b.stores) > 0 {
		b.drain(b.stores[0], ^uint64(0))
	}
}

// reveal writes units of a store to memory, or carries an atomic operation out.
func (m *Memory) reveal(p *pending, units uint64) {
	off := p.addr - p.allocation.base
	if p.change != nil {
		m.late--
		m.remember(p.allocation, off, p.n, p.by, p.seenBy())
		was, v := m.change(p.allocation.Data[off:][:p.n], 0, func(_ int, old uint64) uint64 { return p.change(old) })
		p.allocation.replaced(m, off, int(p.n), was, v, p.release, p.signal(), p.when())
		return
	}
	if p.strong && m.config.OldLoads {
		for u := units; u != 0; u &= u - 1 {
			from, to := p.unit(bits.TrailingZeros64(u))
			m.remember(p.allocation, off+from, to-from, p.by, p.seenBy())
			if p.whole && u&(u-1) != 0 && (p.addr+to)%lineBytes != 0 {
				m.at(m.past.now - 1).more = true
			}
		}
	}
	mem := p.allocation.Data[off : off+p.n]
	if units == all(p.addr, p.n) && !p.allocation.foreign() && !p.whole {
		m.write(mem, p.data[:p.n])
	} else {
		for u := units; u != 0; u &= u - 1 {
			from, to := p.unit(bits.TrailingZeros64(u))
			m.write(mem[from:to], p.data[from:to])
		}
	}
	var at *site
	if p.release != nil {
		at = newSite(off, p.data[:p.n], p.release, p.signal(), p.when())
		p.allocation.toHost(m, p.release)
	} else if p.allocation.memory.sites.pages == nil {
		return
	}
	for u := units; u != 0; u &= u - 1 {
		from, to := p.unit(bits.TrailingZeros64(u))
		p.allocation.memory.sites.set(p.allocation.memory, off+from, to-from, at)
	}
}

// write changes memory.
func (m *Memory) write(dst, src []byte) {
	if string(dst) == string(src) {
		return
	}
	m.changes++
	switch len(src) {
	case 4, 8:
		strongPut(dst, len(src), get(src, len(src)))
	default:
		copy(dst, src)
	}
	m.hold()
}

// Changes counts the stores that became visible and changed bytes. While it does not
// grow, a thread that polls memory finds nothing new.
func (m *Memory) Changes() uint64 { return m.changes }

// Pending counts the warps, blocks and devices with stores that are not yet
// visible to all.
func (m *Memory) Pending() int { return len(m.dirty) }

// Tick makes some pending stores visible, chosen at random under the seed. It
// is cheap; call it about once a warp-instruction, and Turn when another warp is to run.
func (m *Memory) Tick() {
	if m.config.Book != nil {
		m.ticks++
		return
	}
	m.tick()
}

func (m *Memory) tick() {
	if len(m.dirty) == 0 {
		return
	}
	r := m.rand()
	b := m.dirty[r>>32%uint64(len(m.dirty))]
	p := b.stores[r>>16&0xffff%uint64(len(b.stores))]
	if p.fence {
		p = b.stores[0]
	}
	units := ^uint64(0)
	if p.tears || r&3 == 0 {
		units = m.rand() // torn
	}
	b.drain(p, units)
}

// settle makes all pending stores visible.
func (m *Memory) settle() {
	for len(m.dirty) > 0 {
		m.dirty[len(m.dirty)-1].drainAll()
	}
}

// rand is the next number of an xorshift* generator.
func (m *Memory) rand() uint64 {
	m.random ^= m.random >> 12
	m.random ^= m.random << 25
	m.random ^= m.random >> 27
	return m.random * 0x2545f4914f6cdd1d
}
