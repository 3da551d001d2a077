package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A Heap is the memory of malloc and free in kernels.
type Heap interface {
	Malloc(n uint64) uint64 // 0: there is not as much left
	Free(addr uint64) bool  // false: Malloc has not given it, or it is free already
}

const (
	mallocFunction = "malloc" // (.param .b64 bytes) gives .b64
	freeFunction   = "free"   // (.param .b64 address)
)

func execMalloc(w *warp, in *inst, mask uint32) status {
	op, heap := in.x.(*externOp), w.block.grid.Heap
	var result, addr alu.Lanes
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		addr[lane] = uint64(op.results[0])
		if heap != nil {
			result[lane] = heap.Malloc(w.passed(op, 0, lane))
		}
	}
	w.own.store(mask, &addr, 8, []*alu.Lanes{&result})
	return next
}

func execFree(w *warp, in *inst, mask uint32) status {
	op, heap := in.x.(*externOp), w.block.grid.Heap
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if addr := w.passed(op, 0, lane); addr != 0 && (heap == nil || !heap.Free(addr)) {
			return w.failAt(in, lane, weakmem.BadFree, addr,
				"free of what malloc in a kernel has not given, or of what is free already")
		}
	}
	return next
}
