package weakmem

import "github.com/ringo-go/ringo/internal/emu/decision"

// pastKept is how many overwritten words strong loads may still see, a power of two. A warp's store of vectors of 16
// bytes is 64 of them. Loads look only at those of their own words, so more cost no more than memory: 64 bytes each.
const pastKept = 1 << 13

// An overwrite is a strong store or atomic operation that became visible, and
// what it replaced, within one 8-byte word.
type overwrite struct {
	addr uint64 // in physical memory
	n    uint8
	more bool // the next one is of the same store and line
	by   *origin
	seenBy
	old    [8]byte
	sites  [2]*site // of the word's halves
	before uint64   // the time after the one before it of the same word, or of another with the same place in past.last
}

// A seenBy is who may have seen a store before it became visible to all, beside its own warp.
type seenBy struct {
	near   bool // other warps of the block, or of its cluster
	far    bool // the device's other blocks
	warp   uint8
	device int
}

func (p *pending) seenBy() seenBy { return seenBy{p.near, p.far, p.warp, p.by.grid.device} }

// A past is the last strong stores that became visible. Their number is the time.
type past struct {
	ring []overwrite // grows to pastKept
	now  uint64      // how many there were
	last []uint64    // of a word: the time after its last overwrite; words share places
}

// pastFirst is how many the ring of a past has room for at first, pastPlaces how many places past.last has.
const pastFirst, pastPlaces = 256, 1024

func (m *Memory) at(i uint64) *overwrite { return &m.past.ring[i&uint64(len(m.past.ring)-1)] }

// lastOf is the time after the last overwrite of the word that addr lies in, or of another.
func (m *Memory) lastOf(addr uint64) *uint64 {
	return &m.past.last[addr/8*0x9e3779b97f4a7c15>>32%pastPlaces]
}

// remember notes that n bytes from off, within a word, are about to be overwritten.
func (m *Memory) remember(s *Allocation, off, n uint64, by *origin, seen seenBy) {
	if !m.config.OldLoads {
		return
	}
	p := &m.past
	switch size := uint64(len(p.ring)); {
	case size == 0:
		p.ring, p.last = make([]overwrite, pastFirst), make([]uint64, pastPlaces)
	case p.now == size && size < pastKept:
		p.ring = append(make([]overwrite, 0, 2*size), p.ring...)[:2*size]
	}
	addr := s.base + off
	o, last := m.at(p.now), m.lastOf(addr)
	*o = overwrite{addr: addr, n: uint8(n), by: by, seenBy: seen, before: *last}
	copy(o.old[:n], s.Data[off:])
	for i := range o.sites {
		if off := addr&^7 - s.base + uint64(4*i); addr&^7 >= s.base {
			o.sites[i] = s.memory.sites.slot(off)
		}
	}
	p.now++
	*last = p.now
}

// A read is a strong load: later ones must not see older values than it did.
type read struct{ addr, n, at uint64 }

// A view is the age of the values that a warp's strong loads may see.
type view struct {
	since    uint64 // a time: nothing older
	loads    uint64 // counts those that may be old
	observed uint64 // since when a fence or an acquire is to come
	reads    [8]read
	next     int
}

// asOf chooses at which time a strong load of a warp of the block, at addr in physical memory, happens.
func (b *Block) asOf(warp int, r *run, addr uint64, how *How) uint64 {
	m, v, n := b.memory, &b.warps[warp].view, r.bytes()
	v.loads++
	now := m.past.now
	from := v.since
	if kept := uint64(pastKept - lineBytes/8); now > kept {
		from = max(from, now-kept)
	}
	slot := -1
	for i, r := range v.reads {
		if r.n > 0 && r.addr < addr+n && addr < r.addr+r.n {
			from = max(from, r.at)
			if r.addr == addr && r.n == n {
				slot = i
			}
		}
	}
	at := now
	if from, until := b.unseen(warp, from, addr, n); until > from {
		at = b.ago(warp, now, from, until, storeNumber(v.loads, r.first), how)
	}
	for at > 0 && at < now && at+pastKept > now && m.at(at-1).more {
		at++
	}
	if slot < 0 {
		slot = v.next
		v.next = (v.next + 1) % len(v.reads)
		v.since = max(v.since, v.reads[slot].at)
	}
	v.reads[slot] = read{addr, n, at}
	return at
}

// ago is a time at which a load may happen: now, or one from until another, by the seed or the Book.
func (b *Block) ago(warp int, now, from, until, number uint64, how *How) uint64 {
	m, book, by := b.memory, b.memory.config.Book, b.origin.decider(uint8(warp))
	if book.Follows() {
		d, ok := book.Take(decision.Old, by, number, 0)
		if !ok {
			return now
		}
		book.Tell(d, decision.Scene{Kernel: b.grid.kernel, Line: how.Line, Thread: 32*warp + int(number&31)})
		return max(from, now-min(now, d.Ago))
	}
	if m.rand()>>33&1 != 0 {
		return now
	}
	at := from + m.rand()>>16%(until-from)
	if book.Records() {
		book.Add(decision.Decision{Kind: decision.Old, Warp: by, At: number, Ago: now - at})
	}
	return at
}

// unseen is from, or the time of the last store to these bytes that the warp may have seen, if that is
// later; and the time after one of the stores since, at random, 0 if there are none.
func (b *Block) unseen(warp int, from, addr, n uint64) (since, until uint64) {
	m := b.memory
	since = from
	others := uint64(0)
	for word := addr &^ 7; word < addr+n; word += 8 {
		for i := *m.lastOf(word); i > since; i = m.at(i - 1).before {
			o := m.at(i - 1)
			if o.addr&^7 != word || o.addr >= addr+n || addr >= o.addr+uint64(o.n) {
				continue
			}
			if o.by == &b.origin && (o.near || int(o.warp) == warp) || o.near && o.by.inCluster(&b.origin) ||
				o.far && o.device == b.grid.device {
				since = i
				break
			}
			if others++; others == 1 || m.rand()>>33%others == 0 {
				until = i
			}
		}
	}
	return since, until
}

// rollBack changes p, the bytes at addr in physical memory, to their values at a time.
func (m *Memory) rollBack(p []byte, addr, at uint64) {
	end := addr + uint64(len(p))
	for word := addr &^ 7; word < end; word += 8 {
		for i := *m.lastOf(word); i > at; i = m.at(i - 1).before {
			o := m.at(i - 1)
			if from, to := max(o.addr, addr), min(o.addr+uint64(o.n), end); o.addr&^7 == word && from < to {
				copy(p[from-addr:to-addr], o.old[from-o.addr:])
			}
		}
	}
}

// siteAt is the site at an offset as it was.
func (m *Memory) siteAt(s *Allocation, off uint64, size int, v, at uint64) *site {
	if at < m.past.now {
		var first *overwrite // since then
		addr := s.base + off
		for i := *m.lastOf(addr); i > at; i = m.at(i - 1).before {
			o := m.at(i - 1)
			if o.addr&^7 == addr&^7 && o.addr < addr+uint64(size) && addr < o.addr+uint64(o.n) {
				first = o
			}
		}
		if first != nil {
			return first.sites[addr/4%2].holds(off, size, v)
		}
	}
	return s.memory.sites.find(off, size, v)
}

// upToDate makes later strong loads of the warp see no value older than now.
func (w *warp) upToDate(m *Memory) {
	if m.past.now > w.view.since {
		w.view = view{since: m.past.now, loads: w.view.loads}
	}
}

// knew is the time of the last value that the warp's strong loads have seen, or of its stores and of those that it may
// have seen early.
func (w *warp) knew() uint64 {
	if w.buffer.memory.past.now == 0 {
		return 0
	}
	at := max(w.view.since, w.view.observed, w.buffer.lastShown())
	for i := range w.view.reads {
		at = max(at, w.view.reads[i].at)
	}
	return at
}

// acquires makes later strong loads of the warp see no value older than a time, nor what it has observed.
func (v *view) acquires(at uint64) { v.since = max(v.since, v.observed, at) }
