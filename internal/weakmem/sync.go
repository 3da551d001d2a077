package weakmem

import "math/bits"

// A release is what a thread hands on to those that acquire what it stores.
type release struct {
	by    *origin
	known [System + 1]*vector // by the scope at which it was released; nil: nothing
}

// A place is a location whose value hands on what was released, through any
// number of atomic operations. It is kept for the address; an acquire by a load
// of another size at another address gets nothing.
type place struct {
	value  uint64
	system *vector
	device map[int]*vector
	block  map[uint32]*vector
}

// add has the place hand on r too.
func (p *place) add(r *release) {
	p.system = join(p.system, r.known[System])
	if v := r.known[GPU]; v != nil {
		if p.device == nil {
			p.device = map[int]*vector{}
		}
		p.device[r.by.grid.device] = join(p.device[r.by.grid.device], v)
	}
	if v := r.known[CTA]; v != nil {
		if p.block == nil {
			p.block = map[uint32]*vector{}
		}
		p.block[r.by.agent] = join(p.block[r.by.agent], v)
	}
}

// released notes that a store of v to off became visible, which hands on r or,
// if that is nil, nothing.
func (s *Span) released(m *Memory, off uint64, r *release, v uint64) {
	delete(s.places, off)
	if r != nil {
		s.handOn(m, off, r, 0, v)
	}
}

// handOn is released for an atomic operation that replaced was: what the store
// of that handed on stays.
func (s *Span) handOn(m *Memory, off uint64, r *release, was, v uint64) {
	p := s.places[off]
	if p != nil && p.value != was {
		delete(s.places, off)
		p = nil
	}
	if p == nil && r == nil {
		return
	}
	if p == nil {
		if s.places == nil {
			s.places = map[uint64]*place{}
		}
		p = &place{}
		s.places[off] = p
	}
	p.value = v
	if r != nil {
		p.add(r)
		if s.foreign() {
			m.host = join(m.host, r.known[System])
		}
	}
}

// observe notes that a lane's strong load read v from off.
func (b *Block) observe(warp, l int, s *Span, off, v uint64, how *How) {
	p := s.places[off]
	if p != nil && p.value != v {
		p = nil // it read another store: its own, or one to some of the bytes
	}
	stranger := s.foreign() && how.Scope == System && p == nil
	if p == nil && !stranger {
		return
	}
	var got [System + 1]*vector
	if p != nil {
		got[CTA] = p.block[b.origin.agent]
		if how.Scope >= GPU {
			got[GPU] = p.device[b.grid.device]
		}
		if how.Scope >= System {
			got[System] = p.system
		}
	}
	if stranger { // it may hand on all that it saw
		got[System] = join(got[System], b.memory.host)
	}
	for scope, v := range got {
		if v == nil {
			continue
		}
		lane := b.lane(warp, l)
		if how.Order == Relaxed || how.Order == Release {
			lane.observed[scope] = join(lane.observed[scope], v)
		} else {
			lane.clock = join(b.clockOf(&b.warps[warp], l), v)
		}
	}
}

// Fence orders what the lanes did before with what they do after, for the
// threads of how.Scope. How.Order is AcqRel or SeqCst.
func (b *Block) Fence(warp int, mask uint32, how How) {
	if b.memory.config.Plain {
		return
	}
	w := &b.warps[warp]
	w.buffer.push(how.Scope)
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		lane := b.lane(warp, l)
		for scope := range how.Scope + 1 {
			if v := lane.observed[scope]; v != nil {
				lane.clock = join(b.clockOf(w, l), v)
				lane.observed[scope] = nil
			}
		}
		now := b.moment(warp, l)
		for scope := range how.Scope + 1 {
			lane.fenced[scope] = now
		}
	}
	w.time++
}

// moment is the present one of a lane; its warp's time has to go on after.
func (b *Block) moment(warp, l int) moment {
	w := &b.warps[warp]
	return moment{b.clockOf(w, l), w.synced, w.time + 1}
}

// until is all that happened before the moment.
func (b *Block) until(warp, l int, at moment) *vector {
	own := &vector{live: make([]entry, 0, 2)}
	if at.synced > 0 {
		own.live = append(own.live, entry{key(b.origin.agent, firstWarp+warp), at.synced})
	}
	own.live = append(own.live, entry{key(b.origin.agent, firstLane+32*warp+l), at.time})
	return join(at.known, own)
}

// releases reports whether strong stores of these lanes hand something on.
func (w *warp) releases(mask uint32) bool {
	if w.lanes == nil {
		return false
	}
	for m := mask; m != 0; m &= m - 1 {
		if w.lanes[bits.TrailingZeros32(m)].fenced[CTA].time > 0 {
			return true
		}
	}
	return false
}

// releaseOf is what a strong store or atomic operation of a lane hands on, nil
// if nothing. A release itself has pushed the warp's stores before.
func (b *Block) releaseOf(warp, l int, how *How) *release {
	w := &b.warps[warp]
	if how.Order < Release {
		if !w.releases(1 << l) {
			return nil
		}
		r := &release{by: &b.origin}
		for scope := range how.Scope + 1 {
			switch at := w.lanes[l].fenced[scope]; {
			case scope > CTA && at == w.lanes[l].fenced[scope-1]:
				r.known[scope] = r.known[scope-1]
			case at.time > 0:
				r.known[scope] = b.until(warp, l, at)
			}
		}
		return r
	}
	r := &release{by: &b.origin}
	v := b.until(warp, l, b.moment(warp, l))
	w.time++
	for scope := range how.Scope + 1 {
		r.known[scope] = v
	}
	return r
}
