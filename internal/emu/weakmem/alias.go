package weakmem

import (
	"fmt"
	"math/bits"
	"slices"
)

// A physical is the memory behind an Allocation, or behind several: aliases. What is known of the memory's bytes is
// kept by their offset, and so holds for all addresses. Buffers and the past know a byte by its address in physical
// memory, of which each physical has a range; that of memory without aliases is its Allocation's.
type physical struct {
	number  uint64
	base    uint64   // of the first byte
	bytes   uint64   // of the longest Allocation
	addrs   []uint64 // at which the memory is or was mapped; a record has the index
	exposed bool     // see Allocation.Expose
	shadow  shadow
	sites   sites
}

// A slot is a range of addresses in physical memory, above all addresses of allocations without aliases.
const (
	firstSlot = 1 << 63
	slotBytes = 1 << 44
	slotCount = firstSlot / slotBytes
)

// pages is how many pages the memory has.
func (p *physical) pages() int { return int((p.bytes + pageBytes - 1) / pageBytes) }

// grow makes room for as many bytes.
func (p *physical) grow(n uint64) {
	if n <= p.bytes {
		return
	}
	p.bytes = n
	if p.shadow.pages != nil {
		p.shadow.pages = append(p.shadow.pages, make([]page, p.pages()-len(p.shadow.pages))...)
	}
	if p.sites.pages != nil {
		p.sites.pages = append(p.sites.pages, make([]*[siteSlots]*site, p.pages()-len(p.sites.pages))...)
	}
}

// attach gives an allocation its memory.
func (m *Memory) attach(s *Allocation) error {
	n := uint64(len(s.Data))
	if s.Physical == 0 {
		s.memory, s.base = &physical{base: s.Addr, bytes: n}, s.Addr
		return nil
	}
	i := slices.IndexFunc(m.physicals, func(p *physical) bool { return p.number == s.Physical })
	if i < 0 {
		i = len(m.physicals)
		m.physicals = append(m.physicals, &physical{number: s.Physical, base: m.slot() + s.Addr%lineBytes})
	}
	p := m.physicals[i]
	if n > slotBytes-2*lineBytes || p.base%lineBytes != s.Addr%lineBytes {
		return fmt.Errorf("weakmem: mapping %q at %#x: another address of the memory is %d of a line of %d: choose "+
			"addresses at the same byte of a line, and at most %d bytes", s.Name, s.Addr, p.base%lineBytes, lineBytes,
			uint64(slotBytes-2*lineBytes))
	}
	p.grow(n)
	alias := slices.Index(p.addrs, s.Addr)
	if alias < 0 {
		alias = len(p.addrs)
		p.addrs = append(p.addrs, s.Addr)
	}
	s.memory, s.base, s.alias = p, p.base, uint16(alias)
	return nil
}

// slot is the address of one that no memory has.
func (m *Memory) slot() uint64 {
	for {
		m.slots++
		at := firstSlot + m.slots%slotCount*slotBytes
		if !slices.ContainsFunc(m.physicals, func(p *physical) bool { return p.base-at < slotBytes }) {
			return at
		}
	}
}

// Forget says that the memory of a number, which is mapped nowhere, was freed.
func (m *Memory) Forget(number uint64) {
	m.physicals = slices.DeleteFunc(m.physicals, func(p *physical) bool { return p.number == number })
}

// FenceAlias is fence.proxy.alias of the lanes: what they stored and know by one address of memory is seen by its other
// addresses. The fence orders nothing else.
func (b *Block) FenceAlias(warp int, mask uint32) {
	if b.memory.config.Plain {
		return
	}
	own := b.own(warp, mask)
	b.learn(warp, mask, func(known *vector) *vector { return join(known, join(known, own).asFenced(fencedAlias)) })
	b.warps[warp].time++
}

// aliased reports whether the access sees what the record, which is before the access and of another address, has
// stored within [from, to). If not, aliased says so: a fence.proxy.alias is missing. PTX asks for one between any two
// threads. Only those of one block are checked: beyond it, programs that map each other's memory do without.
func (a *access) aliased(s *Allocation, r *record, from, to uint64) bool {
	if r.kind&write == 0 || a.warp == nil || r.by != &a.block.origin {
		return true
	}
	for at := max(from, r.addr); at < min(to, r.addr+r.n); at++ {
		for x := r.lanesAt(at); x != 0; x &= x - 1 {
			for y := a.record.lanesAt(at); y != 0; y &= y - 1 {
				other, lane := bits.TrailingZeros32(x), bits.TrailingZeros32(y)
				if !a.clockOf(lane).coversIn(fencedAlias, r, other) {
					a.unaliased(s, r, at, other, lane)
					return false
				}
			}
		}
	}
	return true
}

// unaliased reports that a fence.proxy.alias is missing between a lane of the record and a lane of the access.
func (a *access) unaliased(s *Allocation, r *record, at uint64, otherLane, lane int) {
	f := a.record.fault(NoAliasFence, s, at, lane)
	device, kernel, _, _ := r.doer(otherLane)
	f.Detail = fmt.Sprintf("no fence.proxy.alias lies between it and the store%s by %s", a.through(s, r),
		r.whose(otherLane))
	key := finding{kind: NoAliasFence, kernel: f.Kernel, line: f.Line, other: kernel, otherLine: int(r.line),
		firstDev: device, nextDev: f.Device}
	if stop := a.memory.report(key, f); stop != nil && a.fault == nil {
		a.fault = stop
	}
}

// through names the address by which the record accessed the memory, if the access has another.
func (a *access) through(s *Allocation, r *record) string {
	if r.alias == a.record.alias {
		return ""
	}
	return fmt.Sprintf(" through the memory's other address, %#x,", s.memory.addrs[r.alias]+r.addr)
}
