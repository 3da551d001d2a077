package weakmem

// pastKept is how many overwritten words strong loads may still see.
const pastKept = 256

// An overwrite is a strong store or atomic operation that became visible, and
// what it replaced, within one 8-byte word.
type overwrite struct {
	addr   uint64 // in physical memory
	n      uint8
	more   bool // the next one is of the same store and line
	far    bool // the device's other blocks may have seen it before
	device int
	by     *origin
	old    [8]byte
	sites  [2]*site // of the word's halves
}

// A past is the last strong stores that became visible. Their number is the time.
type past struct {
	ring []overwrite // of pastKept
	now  uint64      // how many there were
}

func (m *Memory) at(i uint64) *overwrite { return &m.past.ring[i%pastKept] }

// remember notes that n bytes from off, within a word, are about to be overwritten.
func (m *Memory) remember(s *Allocation, off, n uint64, by *origin, device int, far bool) {
	if !m.config.OldLoads {
		return
	}
	if m.past.ring == nil {
		m.past.ring = make([]overwrite, pastKept)
	}
	o, addr := m.at(m.past.now), s.base+off
	*o = overwrite{addr: addr, n: uint8(n), by: by, device: device, far: far}
	copy(o.old[:n], s.Data[off:])
	for i := range o.sites {
		if off := addr&^7 - s.base + uint64(4*i); addr&^7 >= s.base {
			o.sites[i] = s.memory.sites.slot(off)
		}
	}
	m.past.now++
}

// A read is a strong load: later ones must not see older values than it did.
type read struct{ addr, n, at uint64 }

// A view is the age of the values that a warp's strong loads may see.
type view struct {
	since uint64 // a time: nothing older
	reads [8]read
	next  int
}

// asOf chooses at which time a strong load of the block's warp, of n bytes at addr in physical memory, happens.
func (b *Block) asOf(w *warp, addr, n uint64) uint64 {
	m, v := b.memory, &w.view
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
	from, found := b.unseen(from, addr, n)
	if found && m.rand()>>33&1 == 0 {
		at = from + m.rand()>>16%(now-from+1)
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

// unseen is from, or the time of the last store to these bytes that the block has seen, if that is
// later. It reports whether there are stores since.
func (b *Block) unseen(from, addr, n uint64) (since uint64, found bool) {
	m := b.memory
	for i := m.past.now; i > from; i-- {
		o := m.at(i - 1)
		if o.addr >= addr+n || addr >= o.addr+uint64(o.n) {
			continue
		}
		if o.by == &b.origin || o.far && o.device == b.grid.device {
			return i, found
		}
		found = true
	}
	return from, found
}

// rollBack changes p, the bytes at addr in physical memory, to their values at a time.
func (m *Memory) rollBack(p []byte, addr, at uint64) {
	end := addr + uint64(len(p))
	for i := m.past.now; i > at; i-- {
		o := m.at(i - 1)
		if from, to := max(o.addr, addr), min(o.addr+uint64(o.n), end); from < to {
			copy(p[from-addr:to-addr], o.old[from-o.addr:])
		}
	}
}

// siteAt is the site at an offset as it was.
func (m *Memory) siteAt(s *Allocation, off uint64, size int, v, at uint64) *site {
	addr := s.base + off
	for i := at; i < m.past.now; i++ {
		o := m.at(i)
		if o.addr < addr+uint64(size) && addr < o.addr+uint64(o.n) {
			return o.sites[addr/4%2].holds(off, size, v)
		}
	}
	return s.memory.sites.find(off, size, v)
}

// upToDate makes later strong loads of the warp see no value older than now.
func (w *warp) upToDate(m *Memory) {
	if m.past.now > w.view.since {
		w.view = view{since: m.past.now}
	}
}
