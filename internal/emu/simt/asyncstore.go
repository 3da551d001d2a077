package simt

import (
	"encoding/binary"
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An asyncStore is st.async or red.async, which stores registers to shared memory, or reduces into it, at some later
// time, and tells a barrier then. Its sources are the two addresses, then the values.
type asyncStore struct {
	dst, bar pointer
	size     int                        // of an element
	update   func(old, v uint64) uint64 // red.async
}

func decodeAsyncStore(c *compiler, fr *frame, in *ptx.Instr) {
	op := &asyncStore{size: in.Types[0].Size()}
	d := inst{exec: execAsyncStore, x: op}
	if in.Op == "red" {
		op.update = reduction(in)
	}
	op.dst = c.pointer(fr, in, &d, in.Operands[0], in.Space)
	op.bar = c.pointer(fr, in, &d, in.Operands[2], in.Space)
	c.sources(fr, in, &d, in.Operands[1])
	c.emit(fr, in, d)
}

func execAsyncStore(w *warp, in *inst, mask uint32) status {
	if !w.block.grid.explicit() { // as an H100 does
		return w.fail(in, mask, weakmem.BadInstruction,
			"an illegal instruction in a launch without clusters: give it some, of one block each maybe")
	}
	for m := mask; m != 0; m &= m - 1 {
		if s := w.storeLater(in, bits.TrailingZeros32(m)); s != next {
			return s
		}
	}
	return next
}

func (w *warp) storeLater(in *inst, lane int) status {
	op := in.x.(*asyncStore)
	plan := weakmem.Plan{ToShared: true, Line: in.ptx.Line, Update: op.update, Size: op.size, Signals: true}
	to, at, s := w.inShared(in, &op.dst, in.src[0], lane)
	if s != next {
		return s
	}
	plan.Dst, plan.To = at, to.mem
	if plan.Barrier, s = w.beside(in, &op.bar, in.src[1], lane, to); s != next {
		return s
	}
	for _, slot := range in.src[2:] {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], w.slot(slot)[lane])
		plan.Value = append(plan.Value, b[:op.size]...)
	}
	plan.Bytes, plan.Align = len(plan.Value), len(plan.Value)
	bar, s := w.mbarrierOf(in, lane, to, plan.Barrier)
	if s != next {
		return s
	}
	if w.launch(in, lane, plan, to, bar) == nil {
		return gone
	}
	return next
}
