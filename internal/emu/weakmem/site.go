package weakmem

import "maps"

// A site is bytes whose value carries a release: that of a store, and of the atomic
// operations that replaced its value.
type site struct {
	off, n uint64
	data   [16]byte
	last   *release // of the store, or of the last atomic operation; nil: nothing
	signal          // of last
	when   uint64   // the time since which all see what the releases are of: see past
	// the releases before last, by the scopes of their threads
	system  *vector
	device  map[int]*vector
	cluster map[*cluster]*vector
	block   map[uint32]*vector
}

// sites are the sites of an allocation's memory, by offset.
type sites struct {
	pages []*[siteSlots]*site // by 4 KiB, a slot for 4 bytes
}

const siteSlots = pageBytes / 4

// find is the site that carries a release with the value, of size bytes, or nil.
func (t *sites) find(off uint64, size int, v uint64) *site {
	return t.slot(off).holds(off, size, v)
}

// slot is the site at off, whatever its value is.
func (t *sites) slot(off uint64) *site {
	if t.pages == nil || off/pageBytes >= uint64(len(t.pages)) || t.pages[off/pageBytes] == nil {
		return nil
	}
	return t.pages[off/pageBytes][off/4%siteSlots]
}

// holds is the site if it carries a release with the value, of size bytes, or nil.
func (p *site) holds(off uint64, size int, v uint64) *site {
	if p == nil || off < p.off || off+uint64(size) > p.off+p.n || get(p.data[off-p.off:], size) != v {
		return nil // of other bytes, or another store came between
	}
	return p
}

// set makes p the site of n bytes from off; nil removes the site there.
func (t *sites) set(of *physical, off, n uint64, p *site) {
	if t.pages == nil {
		if p == nil {
			return
		}
		t.pages = make([]*[siteSlots]*site, of.pages())
	}
	for end := off + n; off < end; off = off&^3 + 4 {
		page := &t.pages[off/pageBytes]
		if *page == nil {
			if p == nil {
				off = off | (pageBytes - 1) // on to the next page
				continue
			}
			*page = new([siteSlots]*site)
		}
		(*page)[off/4%siteSlots] = p
	}
}

// newSite is a site of data at off that carries the release of a store, at a time.
func newSite(off uint64, data []byte, r *release, e signal, now uint64) *site {
	p := &site{off: off, n: uint64(len(data)), last: r, signal: e, when: now}
	copy(p.data[:], data)
	return p
}

// replaced notes that an atomic operation replaced a value of the allocation. The new value
// carries the releases of the old one, and r, which all see since a time.
func (s *Allocation) replaced(m *Memory, off uint64, size int, was, v uint64, r *release, e signal, when uint64) {
	sites := &s.memory.sites
	p := sites.find(off, size, was)
	if p == nil && r == nil {
		sites.set(s.memory, off, uint64(size), nil)
		return
	}
	if p == nil || p.off != off || p.n != uint64(size) || m.config.OldLoads {
		q := &site{off: off, n: uint64(size)}
		if p != nil {
			q.last, q.system, q.device, q.block = p.last, p.system, maps.Clone(p.device), maps.Clone(p.block)
			q.when = p.when
			q.cluster = maps.Clone(p.cluster)
		}
		p = q
		sites.set(s.memory, off, uint64(size), p)
	}
	put(p.data[:], size, v)
	p.signal = e
	if r != nil {
		p.when = max(p.when, when)
		p.keep()
		p.last = r
		s.toHost(m, r)
	}
}

// keep makes room for another last.
func (p *site) keep() {
	r := p.last
	if r == nil {
		return
	}
	p.system = join(p.system, r.known[System])
	if v := r.known[GPU]; v != nil {
		if p.device == nil {
			p.device = map[int]*vector{}
		}
		p.device[r.by.grid.device] = join(p.device[r.by.grid.device], v)
	}
	if v, c := r.known[Cluster], r.by.cluster; v != nil && c != nil {
		if p.cluster == nil {
			p.cluster = map[*cluster]*vector{}
		}
		p.cluster[c] = join(p.cluster[c], v)
	}
	if v := r.known[CTA]; v != nil {
		if p.block == nil {
			p.block = map[uint32]*vector{}
		}
		p.block[r.by.agent] = join(p.block[r.by.agent], v)
	}
}

// to gives what the reader may acquire, by scope.
func (p *site) to(reader *origin, got *clocks) {
	if p.last != nil {
		p.last.to(reader, got)
	}
	got[System] = join(got[System], p.system)
	if reader.grid != nil {
		got[GPU] = join(got[GPU], p.device[reader.grid.device])
		if c := reader.cluster; c != nil {
			got[Cluster] = join(got[Cluster], p.cluster[c])
		}
		got[CTA] = join(got[CTA], p.block[reader.agent])
	}
}

// to gives what the reader may acquire, by scope.
func (r *release) to(reader *origin, got *clocks) {
	got[System] = r.known[System]
	if r.by.grid == nil || reader.grid == nil {
		return
	}
	if r.by.grid.device == reader.grid.device {
		got[GPU] = r.known[GPU]
	}
	if r.by.inCluster(reader) {
		got[Cluster] = r.known[Cluster]
	}
	if r.by == reader {
		got[CTA] = r.known[CTA]
	}
}

// toHost adds a release to the host's clock if the host can see the allocation.
func (s *Allocation) toHost(m *Memory, r *release) {
	if s.foreign() {
		m.host = join(m.host, r.known[System])
	}
}
