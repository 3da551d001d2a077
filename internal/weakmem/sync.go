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
		s.handOn(m, off, r, v)
	}
}

// handOn is released for an atomic operation: what earlier stores handed on stays.
func (s *Span) handOn(m *Memory, off uint64, r *release, v uint64) {
	p := s.places[off]
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
	stranger := s.foreign() && how.Scope == System && (p == nil || p.value != v)
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
		v := b.publish(warp, l)
		for scope := range how.Scope + 1 {
			lane.released[scope] = v
		}
	}
	w.time++
}

// publish is what a lane may release now; its warp's time has to go on after.
func (b *Block) publish(warp, l int) *vector {
	w := &b.warps[warp]
	own := &vector{}
	if w.synced > 0 {
		own.live = append(own.live, entry{key(b.origin.agent, firstWarp+warp), w.synced})
	}
	own.live = append(own.live, entry{key(b.origin.agent, firstLane+32*warp+l), w.time + 1})
	return join(b.clockOf(w, l), own)
}

// releaseOf is what a strong store or atomic operation of a lane hands on, nil
// if nothing. A release itself has pushed the warp's stores before.
func (b *Block) releaseOf(warp, l int, how *How) *release {
	w := &b.warps[warp]
	r := &release{by: &b.origin}
	if how.Order >= Release {
		v := b.publish(warp, l)
		w.time++
		for scope := range how.Scope + 1 {
			r.known[scope] = v
		}
		return r
	}
	if w.lanes == nil || w.lanes[l].released[CTA] == nil {
		return nil
	}
	for scope := range how.Scope + 1 {
		r.known[scope] = w.lanes[l].released[scope]
	}
	return r
}
