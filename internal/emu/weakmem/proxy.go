package weakmem

import (
	"fmt"
	"math/bits"
	"strings"
)

// Bulk copies access memory through another way than loads and stores do, the async
// proxy. A store through one is seen through the other only if a proxy fence lies
// between them, somewhere on the path that orders them: at the writer, at the reader, or
// at a thread that passed it on. The end of a kernel is one.
//
// So a vector has entries of two more kinds: what was before a proxy fence for global, and
// for shared memory. They have a bit of their own in their keys, and so go wherever a clock
// goes.
const (
	fencedAlias  uint64 = 1 << 61 // see alias.go
	fencedShared uint64 = 1 << 62
	fencedGlobal uint64 = 1 << 63
)

// FenceProxy is fence.proxy.async of the lanes, for shared memory, global memory, or both. Lanes
// of one fence instruction also order each other's stores.
func (b *Block) FenceProxy(warp int, mask uint32, shared, global bool) {
	if b.memory.config.Plain {
		return
	}
	own := b.own(warp, mask)
	b.learn(warp, mask, func(known *vector) *vector {
		v := join(known, own)
		if shared {
			v = join(v, v.asFenced(fencedShared))
		}
		if global {
			v = join(v, v.asFenced(fencedGlobal))
		}
		return join(known, v.only(fencedShared|fencedGlobal))
	})
	b.warps[warp].time++
}

// asFenced is what is before, as before a proxy fence.
func (v *vector) asFenced(space uint64) *vector {
	f := &vector{}
	if space == fencedShared {
		f.fenced = v.ended
	}
	for _, e := range v.live {
		if e.key < fencedAlias {
			f.live = append(f.live, entry{e.key | space, e.until})
		}
	}
	return f
}

// only is the entries whose keys have one of the bits.
func (v *vector) only(spaces uint64) *vector {
	f := &vector{fenced: v.fenced}
	for _, e := range v.live {
		if e.key&spaces != 0 {
			f.live = append(f.live, e)
		}
	}
	return f
}

// proxied reports whether the access sees what the record of the other proxy, which is
// before it, has stored within [from, to). If not, it says so: a proxy fence is missing.
func (a *access) proxied(s *Allocation, r *record, from, to uint64) bool {
	if r.kind&write == 0 || a.block == nil || r.by.grid == nil {
		return true
	}
	space := fencedGlobal
	if s.block != nil {
		space = fencedShared
	}
	for at := max(from, r.addr); at < min(to, r.addr+r.n); at++ {
		for x := r.lanesAt(at); x != 0; x &= x - 1 {
			for y := a.record.lanesAt(at); y != 0; y &= y - 1 {
				other, lane := bits.TrailingZeros32(x), bits.TrailingZeros32(y)
				v := a.clockOf(lane)
				if !v.coversIn(space, r, other) || r.by.maker() != "" && r.kind&async == 0 && !within(v.fenced, r.by.agent) {
					a.unfenced(s, r, at, other, lane)
					return false
				}
			}
		}
	}
	return true
}

// unfenced reports that a proxy fence is missing between a lane of the record and a lane of
// the access.
func (a *access) unfenced(s *Allocation, r *record, at uint64, otherLane, lane int) {
	f := a.record.fault(NoProxyFence, s, at, lane)
	f.Shared = s.block != nil
	device, kernel, _, _ := r.doer(otherLane)
	store, through := "a bulk copy's store", "generic"
	if a.record.kind&async != 0 {
		store, through = "the "+strings.TrimSuffix(does(true, r.bytes()), " to"), "async"
	}
	f.Detail = fmt.Sprintf("through the %s proxy: no fence.proxy.async lies between it and %s by %s", through, store,
		r.whose(otherLane))
	key := finding{kind: NoProxyFence, kernel: f.Kernel, line: f.Line, other: kernel, otherLine: int(r.line),
		shared: f.Shared, firstDev: device, nextDev: f.Device}
	if stop := a.memory.report(key, f); stop != nil && a.fault == nil {
		a.fault = stop
	}
}
