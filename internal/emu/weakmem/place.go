package weakmem

// Clocks are what a thread may learn, by the scope that holds both threads. Nil is nothing.
type clocks [System + 1]*vector

// set is v up to a scope from now on.
func (c *clocks) set(v *vector, s Scope) {
	for scope := range s + 1 {
		c[scope] = v
	}
}

// join adds what others have up to a scope.
func (c *clocks) join(o *clocks, s Scope) {
	for scope := range s + 1 {
		c[scope] = join(c[scope], o[scope])
	}
}

// upTo reports whether there is anything up to a scope.
func (c *clocks) upTo(s Scope) bool {
	for _, v := range c[:s+1] {
		if v != nil {
			return true
		}
	}
	return false
}

// Places are clocks of locations: a release there and a strong store behind it are a release pattern, a strong load
// there and an acquire behind it an acquire pattern (PTX ISA, 8.8).
type places struct {
	list []place
	next int    // of a full list, the place that another one takes
	all  clocks // of locations that are no longer in the list: they count for each
}

type place struct {
	addr   uint64 // in physical memory
	known  clocks
	stores []signal // that were observed, the last listMax
}

// observe notes that a store was observed.
func (p *place) observe(e signal) {
	if n := len(p.stores); n > 0 && p.stores[n-1] == e {
		return
	}
	if len(p.stores) == listMax {
		p.stores = append(p.stores[:0], p.stores[1:]...)
	}
	p.stores = append(p.stores, e)
}

// A signal is a strong store or atomic operation of a thread. Who has observed it comes after it, though not after what
// that thread did before, which takes an acquire.
type signal struct {
	by         *origin
	serial     uint32 // of warp.strongs
	warp, lane uint8
}

func (r *record) isSignal(e *signal, lane int) bool {
	return e.by == r.by && e.serial == r.serial && e.warp == r.warp && int(e.lane) == lane
}

// mostPlaces bounds a list. Of more locations races are missed, and none is made up.
const mostPlaces = 16

// placeOf is the place of a location, made if it is not there.
func placeOf(of **places, addr uint64) *place {
	if *of == nil {
		*of = &places{}
	}
	p := *of
	for i := range p.list {
		if p.list[i].addr == addr {
			return &p.list[i]
		}
	}
	if len(p.list) == mostPlaces {
		at := &p.list[p.next]
		p.next = (p.next + 1) % mostPlaces
		p.all.join(&at.known, System)
		*at = place{addr: addr}
		return at
	}
	p.list = append(p.list, place{addr: addr})
	return &p.list[len(p.list)-1]
}

// at adds to c what a location has.
func (p *places) at(addr uint64, c *clocks) {
	if p == nil {
		return
	}
	c.join(&p.all, System)
	for i := range p.list {
		if p.list[i].addr == addr {
			c.join(&p.list[i].known, System)
		}
	}
}

// forget drops what all locations have up to a scope, which a fence has taken over. Stores that were observed remain.
func (p *places) forget(s Scope) {
	if p == nil {
		return
	}
	clear(p.all[:s+1])
	for i := range p.list {
		clear(p.list[i].known[:s+1])
	}
}
