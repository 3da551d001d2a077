package weakmem

import "math/bits"

// A release is the clock that a thread's store passes to threads that acquire it.
type release struct {
	by    *origin
	known clocks // by the scope at which it was released
}

// observe notes that a strong load of a lane read v, of size bytes, from an
// address, and acquires the release of the store.
func (b *Block) observe(warp, l int, s *Allocation, addr uint64, size int, v, at uint64, how *How) {
	w := &b.warps[warp]
	var got clocks
	home, when := s.base+addr-s.Addr, b.memory.past.now
	if q := w.buffer.newest(home, uint64(size)); q != nil {
		if q.release != nil && q.addr <= home && home+uint64(size) <= q.addr+q.n {
			q.release.to(&b.origin, &got)
			if got.upTo(how.Scope) {
				placeOf(&b.lane(warp, l).seen, home).observe(q.signal())
			}
		}
	} else if p := b.memory.siteAt(s, addr-s.Addr, size, v, at); p != nil {
		p.to(&b.origin, &got)
		when = p.when
		if got.upTo(how.Scope) {
			placeOf(&b.lane(warp, l).seen, home).observe(p.signal)
		}
	} else if s.foreign() { // the unseen store may release all that its writer saw
		got[System] = b.memory.host
	} else if when = 0; how.Order == Relaxed {
		return
	}
	if s.foreign() {
		if v := b.memory.peers(); v != nil {
			got[System], got[GPU] = join(got[System], v), join(got[GPU], v)
			b.lane(warp, l).clock = join(b.clockOf(w, l), b.memory.observed)
		}
	}
	if how.Order == Relaxed || how.Order == Release {
		w.view.observed = max(w.view.observed, when)
		if got.upTo(how.Scope) {
			lane := b.lane(warp, l)
			lane.observes = true
			lane.observed.join(&got, how.Scope)
			placeOf(&lane.seen, home).known.join(&got, how.Scope)
		}
		return
	}
	w.view.acquires(when)
	if w.lanes != nil {
		w.lanes[l].seen.at(home, &got)
	}
	var last *vector // what is released is mostly the same in all scopes
	for scope := range how.Scope + 1 {
		if v := got[scope]; v != nil && v != last {
			b.lane(warp, l).clock = join(b.clockOf(w, l), v)
			last = v
		}
	}
}

// Fence orders the lanes' accesses before it with those after it, for the threads of
// how.Scope. How.Order is AcqRel or SeqCst.
func (b *Block) Fence(warp int, mask uint32, how How) {
	if b.memory.config.Plain {
		return
	}
	w := &b.warps[warp]
	if how.Order == SeqCst {
		w.buffer.push(how.Scope)
		w.upToDate(b.memory)
	} else {
		w.buffer.order(how.Scope)
		w.view.acquires(0)
	}
	b.memory.Released()
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		lane := b.lane(warp, l)
		if lane.observes {
			b.acquire(w, l, how.Scope)
		}
		now := b.moment(warp, l)
		for scope := range how.Scope + 1 {
			lane.fenced[scope] = now
		}
		lane.handing = [System + 1]*release{}
		lane.released.forget(how.Scope)
	}
	if how.Order == SeqCst {
		b.inOrder(warp, mask, how.Scope)
	}
	w.time++
}

// acquire has a lane know what its strong loads have observed up to a scope.
func (b *Block) acquire(w *warp, l int, s Scope) {
	lane := &w.lanes[l]
	lane.observes = false
	for scope, v := range lane.observed {
		switch {
		case v == nil:
		case Scope(scope) > s:
			lane.observes = true
		default:
			lane.clock = join(b.clockOf(w, l), v)
			lane.observed[scope] = nil
		}
	}
	lane.seen.forget(s)
}

// An scOrder is what the fences of order SeqCst have ordered so far. They have one order, here that in which they are
// carried out, and each synchronizes with those after it, if the scope of either holds the other's thread (PTX ISA,
// 8.9.3 and 8.9.4).
type scOrder struct {
	system  *vector              // of fences of system scope
	device  map[int]*vector      // of those of at least the scope of a device, by threads of that device
	cluster map[*cluster]*vector // of those of at least its scope, by its threads
	block   map[uint32]*vector   // of all by threads of a block, by its agent
}

// scEntries bounds the entries of an scOrder's vectors, whose joins cost as much: 128 blocks of 16 warps. Of more the
// oldest are forgotten, which may make a race of what is none.
const scEntries = 2048

// inOrder has a fence of order SeqCst come after those before it and before those after it. Lanes of one fence have no
// order among them. The caller advances the warp's time.
func (b *Block) inOrder(warp int, mask uint32, scope Scope) {
	w, sc, agent, device := &b.warps[warp], &b.memory.sc, b.origin.agent, b.grid.device
	if sc.device == nil {
		sc.device, sc.block = map[int]*vector{}, map[uint32]*vector{}
		sc.cluster = map[*cluster]*vector{}
	}
	before, cluster := sc.block[agent], b.origin.cluster
	if scope >= Cluster && cluster != nil {
		before = join(before, sc.cluster[cluster])
	}
	if scope >= GPU {
		before = join(join(before, sc.device[device]), b.memory.peers())
	}
	if scope == System {
		before = join(before, sc.system)
	}
	now := b.own(warp, mask)
	for m := mask; m != 0; m &= m - 1 {
		now = join(now, b.clockOf(w, bits.TrailingZeros32(m)))
	}
	if before != nil {
		b.learn(warp, mask, func(known *vector) *vector { return join(known, before) })
	}
	sc.block[agent] = join(before, now).newest(scEntries)
	if scope >= Cluster && cluster != nil {
		sc.cluster[cluster] = join(sc.cluster[cluster], now).newest(scEntries)
	}
	if scope >= GPU {
		sc.device[device] = join(sc.device[device], now).newest(scEntries)
	}
	if scope == System {
		sc.system = join(sc.system, now).newest(scEntries)
	}
}

// moment is the present moment of a lane. The caller has to advance the warp's time.
func (b *Block) moment(warp, l int) moment {
	w := &b.warps[warp]
	return moment{b.clockOf(w, l), w.synced, w.time + 1}
}

// until is the clock of all that happened before the moment.
func (b *Block) until(warp, l int, at moment) *vector {
	own := &vector{live: make([]entry, 0, 2)}
	if at.synced > 0 {
		own.live = append(own.live, entry{key(b.origin.agent, firstWarp+warp), at.synced})
	}
	own.live = append(own.live, entry{key(b.origin.agent, firstLane+32*warp+l), at.time})
	return join(at.known, own)
}

// releases reports whether strong stores of these lanes release anything.
func (w *warp) releases(mask uint32) bool {
	if w.lanes == nil {
		return false
	}
	for m := mask; m != 0; m &= m - 1 {
		if lane := &w.lanes[bits.TrailingZeros32(m)]; lane.fenced[CTA].time > 0 || lane.released != nil {
			return true
		}
	}
	return false
}

// releaseOf is the release of a lane's strong store or atomic operation at an address in physical memory, nil if there
// is none. What the warp stored before is ordered before a store with release order.
func (b *Block) releaseOf(warp, l int, addr uint64, how *How) *release {
	w := &b.warps[warp]
	if how.Order < Release {
		if !w.releases(1 << l) {
			return nil
		}
		r := w.lanes[l].handing[how.Scope]
		if r == nil {
			r = &release{by: &b.origin}
			w.lanes[l].handing[how.Scope] = r
			for scope := range how.Scope + 1 {
				switch at := w.lanes[l].fenced[scope]; {
				case scope > CTA && at == w.lanes[l].fenced[scope-1]:
					r.known[scope] = r.known[scope-1]
				case at.time > 0:
					r.known[scope] = b.until(warp, l, at)
				}
			}
		}
		var here clocks
		if w.lanes[l].released.at(addr, &here); here.upTo(how.Scope) {
			here.join(&r.known, how.Scope)
			clear(here[how.Scope+1:])
			return &release{&b.origin, here}
		}
		return r
	}
	r := &release{by: &b.origin}
	v := b.until(warp, l, b.moment(warp, l))
	w.time++
	for scope := range how.Scope + 1 {
		r.known[scope] = v
	}
	placeOf(&b.lane(warp, l).released, addr).known.set(v, how.Scope)
	return r
}

// Know says that lanes learned what is in the Clock: that a Transfer is done, or what other
// threads have released.
func (b *Block) Know(warp int, mask uint32, c Clock) {
	if b.memory.config.Plain || c.v == nil {
		return
	}
	b.warps[warp].upToDate(b.memory)
	b.learn(warp, mask, func(known *vector) *vector { return join(known, c.v) })
}

// learn changes the clocks of lanes. Those that know the same will know the same.
func (b *Block) learn(warp int, mask uint32, f func(known *vector) *vector) {
	w := &b.warps[warp]
	var from, to *vector
	for m, first := mask, true; m != 0; m, first = m&(m-1), false {
		l := bits.TrailingZeros32(m)
		known := b.clockOf(w, l)
		if first || known != from {
			from, to = known, f(known)
		}
		b.lane(warp, l).clock = to
	}
}

// Release is the Clock of all that lanes did and know, for threads of the scope.
func (b *Block) Release(warp int, mask uint32, scope Scope) Clock {
	if b.memory.config.Plain {
		return Clock{}
	}
	w := &b.warps[warp]
	w.buffer.push(scope)
	v := b.own(warp, mask)
	for m := mask; m != 0; m &= m - 1 {
		v = join(v, b.clockOf(w, bits.TrailingZeros32(m)))
	}
	w.time++
	return Clock{v}
}

// Fenced is the Clock of what lanes did and knew before their last fence of at least the scope, for others who are told
// now.
func (b *Block) Fenced(warp int, mask uint32, scope Scope) Clock {
	b.warps[warp].buffer.settleFences()
	lanes := b.warps[warp].lanes
	if lanes == nil {
		return Clock{}
	}
	var v *vector
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		if at := lanes[l].fenced[scope]; at.time > 0 {
			v = join(v, b.until(warp, l, at))
		}
	}
	return Clock{v}
}

// own is the clock of what lanes themselves did until now. The caller has to advance the
// warp's time.
func (b *Block) own(warp int, mask uint32) *vector {
	w := &b.warps[warp]
	if mask&w.live == w.live {
		return &vector{live: []entry{{key(b.origin.agent, firstWarp+warp), w.time + 1}}}
	}
	v := &vector{}
	if w.synced > 0 {
		v.live = append(v.live, entry{key(b.origin.agent, firstWarp+warp), w.synced})
	}
	for m := mask; m != 0; m &= m - 1 {
		v.live = append(v.live, entry{key(b.origin.agent, firstLane+32*warp+bits.TrailingZeros32(m)), w.time + 1})
	}
	return v
}
