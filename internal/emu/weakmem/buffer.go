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
// The lanes of a warp see each other's stores early. That hides no fault: lanes that
// use each other's data without SyncWarp are found as races.
type buffer struct {
	memory *Memory
	up     *buffer // of more threads; its stores are older where they overlap
	limit  int
	beyond Scope      // the least that has threads who do not see these stores
	stores []*pending // the oldest first
	lo, hi uint64     // all stores are within, in physical memory
	site   int        // 1 + index in Memory.dirty, 0 when empty
}

// pending is a store, of one thread or of neighbouring lanes, to bytes without
// gaps. It becomes visible in units of 8 bytes, each at once.
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
		b.lo, b.hi = p.addr, p.addr+p.n
		b.memory.dirty = append(b.memory.dirty, b)
		b.site = len(b.memory.dirty)
	}
	b.lo, b.hi = min(b.lo, p.addr), max(b.hi, p.addr+p.n)
	b.stores = append(b.stores, p)
}

// remove forgets a store, which is drained.
func (b *buffer) remove(i int) {
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
// same bytes.
func (b *buffer) drain(p *pending, units uint64) {
	units &= p.units
	if units == 0 {
		return
	}
	if p.whole {
		units |= p.lines(units) & p.units
	}
	lo, _ := p.unit(bits.TrailingZeros64(units))
	_, hi := p.unit(63 - bits.LeadingZeros64(units))
	b.drainBefore(p, p.addr+lo, hi-lo)
	b.memory.reveal(p, units)
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
	p.change = nil
	b.memory.free = append(b.memory.free, p)
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
	if b.up == nil {
		for len(b.stores) > 0 {
			b.drain(b.stores[0], ^uint64(0))
		}
	}
	if len(b.stores) == 0 {
		return
	}
	for i, p := range b.stores {
		p.far = b.up.up == nil
		b.up.add(p)
		b.stores[i] = nil
	}
	b.stores = b.stores[:0]
	b.clean()
}

// reveal writes units of a store to memory, or carries an atomic operation out.
func (m *Memory) reveal(p *pending, units uint64) {
	off := p.addr - p.allocation.base
	if p.change != nil {
		m.late--
		m.remember(p.allocation, off, p.n, p.by, p.by.grid.device, p.far)
		was, v := m.change(p.allocation.Data[off:][:p.n], 0, func(_ int, old uint64) uint64 { return p.change(old) })
		p.allocation.replaced(m, off, int(p.n), was, v, p.release)
		return
	}
	if p.strong && m.config.OldLoads {
		for u := units; u != 0; u &= u - 1 {
			from, to := p.unit(bits.TrailingZeros64(u))
			m.remember(p.allocation, off+from, to-from, p.by, p.by.grid.device, p.far)
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
		at = newSite(off, p.data[:p.n], p.release)
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
	units := ^uint64(0)
	if p.tears || r&3 == 0 {
		units = m.rand() // torn
	}
	b.drain(p, units)
}

// settle makes all pending stores visible.
func (m *Memory) settle() {
	for len(m.dirty) > 0 {
		b := m.dirty[len(m.dirty)-1]
		b.drain(b.stores[0], ^uint64(0))
	}
}

// rand is the next number of an xorshift* generator.
func (m *Memory) rand() uint64 {
	m.random ^= m.random >> 12
	m.random ^= m.random << 25
	m.random ^= m.random >> 27
	return m.random * 0x2545f4914f6cdd1d
}
