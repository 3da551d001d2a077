package simt

import (
	"math/bits"
	"slices"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/decision"
)

// A lateLoad is a load that a warp has passed and that is not carried out yet: see weakmem.Block.LateLoad.
type lateLoad struct {
	in     *inst
	mask   uint32
	addr   alu.Lanes
	lo, hi uint64 // all bytes are within
}

// One load in loadsLate is late where it may be, under one seed of seedsLate. A warp has mostLate at most.
const loadsLate, seedsLate, mostLate = 2, 3, 4

// later decides whether a load is late.
func (w *warp) later(in *inst, a *access, mask uint32, addr *alu.Lanes) bool {
	world, each := w.block.grid.world, a.size*len(in.dst)
	if !world.late || len(w.late) == mostLate || !w.block.mem.LateLoad(w.index, mask, addr, each, a.how) {
		return false
	}
	w.loads++
	if book := world.cfg.Book; book.Follows() {
		d, ok := book.Take(decision.Load, w.id(), w.loads, 0)
		if !ok {
			return false
		}
		book.Tell(d, decision.Scene{Kernel: w.block.grid.Kernel.Name, Line: in.ptx.Line,
			Thread: 32*w.index + bits.TrailingZeros32(mask)})
	} else if world.random.below(loadsLate) > 0 {
		return false
	} else if book.Records() {
		book.Add(decision.Decision{Kind: decision.Load, Warp: w.id(), At: w.loads})
	}
	l := lateLoad{in: in, mask: mask, addr: *addr}
	l.lo, l.hi = span(mask, addr, each)
	w.late = append(w.late, l)
	w.odd = true
	return true
}

// span is the first byte that threads access, and the one after the last.
func span(mask uint32, addr *alu.Lanes, each int) (lo, hi uint64) {
	lo = ^uint64(0)
	for ; mask != 0; mask &= mask - 1 {
		at := addr[bits.TrailingZeros32(mask)]
		lo, hi = min(lo, at), max(hi, at+uint64(each))
	}
	return lo, hi
}

// passesLate reports whether an instruction may come before the loads that are late. It uses none of their values, is
// no access of their bytes, and orders nothing.
func (w *warp) passesLate(in *inst) bool {
	for _, l := range w.late {
		for _, s := range l.in.dst {
			if s == in.guard || slices.Contains(in.src, s) || slices.Contains(in.dst, s) {
				return false
			}
		}
	}
	if in.alu != nil {
		return true
	}
	switch a := in.x.(type) {
	case label:
		return true
	case *access:
		if in.ptx.Op != "ld" && in.ptx.Op != "st" || !a.how.Passes() {
			return false
		}
		if a.storage != memory && a.storage != anywhere {
			return true
		}
		lo, hi := span(w.groups[w.current].mask, w.address(in, a), a.size*max(len(in.dst), len(in.src)-1))
		return !slices.ContainsFunc(w.late, func(l lateLoad) bool { return lo < l.hi && l.lo < hi })
	}
	return false
}

// catchUp carries out the loads that are late. It is false if one stopped the grid.
func (w *warp) catchUp() bool {
	for _, l := range w.late {
		a, dst := l.in.x.(*access), w.operands(&w.dst, l.in.dst)
		if w.load(l.in, a, memory, l.mask, &l.addr, dst) != next {
			return false
		}
		a.finish(l.mask, dst)
	}
	w.late = w.late[:0]
	return true
}
