package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// An unknown is which threads of a warp hold in which registers a value that PTX leaves open: what a shuffle gives for
// a thread that does not take part. It is a fault where it is stored as it is, or an address. What is computed of it
// counts as known, as in reductions by a part of a warp, whose last threads are asked for nothing; so does what comes
// by branches and local memory.
type unknown struct {
	any  bool // else all is known
	in   []uint32
	from *inst // the last shuffle
}

func (u *unknown) clear() {
	if u.any {
		u.any = false
		clear(u.in)
	}
}

// of is the threads that do not know a slot.
func (u *unknown) of(slot int32) uint32 {
	if slot < 0 {
		return 0
	}
	return u.in[slot]
}

// follow passes on what is unknown of an instruction's sources. It is false if it has stopped the grid.
func (u *unknown) follow(w *warp, in *inst, mask uint32) bool {
	if in.guard != noSlot {
		mask &= w.guard(in)
	}
	var guard, all uint32
	if in.guard != noSlot {
		guard = u.of(in.guard) & w.groups[w.current].mask
	}
	for _, s := range in.src {
		all |= u.of(s)
	}
	switch x := in.x.(type) {
	case *syncOp:
		if x.together == nil {
			return true // see shared
		}
	case *access:
		if x.storage == local || x.storage == arguments {
			break
		}
		if len(in.dst) > 0 {
			all = u.of(in.src[0])
		}
		return w.known(in, mask, all|guard)
	case *atomic:
		return w.known(in, mask, all|guard)
	}
	if in.alu == nil || in.ptx.Op != "selp" && in.ptx.Op != "mov" && in.ptx.Op != "cvt" {
		all = 0 // sums of a part of a warp are stored by all of it, and read of those that know
	} else if in.ptx.Op == "selp" {
		p := *w.slot(in.src[2])
		all = u.of(in.src[2])
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			all |= u.of(in.src[1-p[lane]&1]) & (1 << lane)
		}
	}
	for _, s := range in.dst {
		u.in[s] = u.in[s]&^mask | all&mask | guard
	}
	return true
}

// known wants the threads to know what an access uses; then they know what it gives.
func (w *warp) known(in *inst, mask, not uint32) bool {
	u := &w.unknown
	if not &= mask; not != 0 {
		w.failPair(in, not, u.from, not, "uses a value that PTX leaves open: a shuffle has read from a thread that is not "+
			"in its mask, or has ended: name threads that take part")
		return false
	}
	for _, s := range in.dst {
		u.in[s] &^= mask
	}
	return true
}

// shared passes on what is unknown by an instruction that threads carry out together: those of each group at one of
// their own.
func (w *warp) shared(op *syncOp, mask uint32, at []*inst, masks []uint32) {
	u := &w.unknown
	if len(at[0].dst) == 0 || !u.any && (mask == everyLane || !op.shuffles) {
		return
	}
	if u.in == nil {
		u.in = make([]uint32, w.block.grid.Kernel.code.slots)
	}
	var not, all uint32
	var values, got, spare alu.Lanes
	var more [3]alu.Lanes
	for i, in := range at {
		not |= u.of(in.src[0]) & masks[i]
		for _, s := range in.src[1:] {
			all |= u.of(s) & masks[i]
		}
		for k, s := range in.src[1:] {
			copyLanes(&more[k], w.slot(s), masks[i])
		}
	}
	switch {
	case op.shuffles:
		for l := range values {
			values[l] = uint64(not >> l & 1)
		}
		op.run(mask, []*alu.Lanes{&got, &spare}, []*alu.Lanes{&values, &more[0], &more[1], &more[2]})
		for l := range got { // what is undefined is odd
			all |= uint32(got[l]&1) << l
		}
	case not != 0:
		all = everyLane
	}
	for i, in := range at {
		for _, s := range in.dst {
			u.in[s] &^= masks[i]
		}
		u.in[in.dst[0]] |= all & masks[i]
	}
	if all&mask != 0 {
		u.any, w.odd = true, true
		if op.shuffles {
			u.from = at[0]
		}
	}
}
