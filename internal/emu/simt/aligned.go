package simt

import (
	"fmt"
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// everyLane is the mask of a whole warp.
const everyLane = 1<<32 - 1

// together is what an instruction does for all threads of a warp.
type together func(w *warp, in *inst) status

// decodeAligned decodes an instruction of .sync.aligned on matrices, which all 32 threads of a warp carry out together.
// A group of threads that comes to it first waits for the others. It is a fault if one of them has ended, or is at
// another such instruction, where PTX leaves open what happens.
func decodeAligned(do func(c *compiler, fr *frame, in *ptx.Instr, d *inst) together) decoder {
	return func(c *compiler, fr *frame, in *ptx.Instr) {
		d := inst{exec: execAligned}
		d.x = &syncOp{name: in.Name(), together: do(c, fr, in, &d)}
		c.emit(fr, in, d)
	}
}

func execAligned(w *warp, in *inst, mask uint32) status {
	if s := w.complete(in, mask); s != next {
		return s
	}
	if mask == everyLane {
		return in.x.(*syncOp).together(w, in)
	}
	w.hold(mask, atSync, everyLane)
	w.retrySync()
	return gone
}

// complete stops the grid if a thread of the warp has ended, or never was.
func (w *warp) complete(in *inst, mask uint32) status {
	if w.live == everyLane {
		return next
	}
	return w.fail(in, mask, weakmem.BadInstruction,
		"all 32 threads of a warp have to carry out what is .aligned, of this warp only %d live", bits.OnesCount32(w.live))
}

// alignedApart carries out an instruction of .aligned for threads that came to it one after the other.
func (w *warp) alignedApart(who []int) status {
	g := &w.groups[who[0]]
	ins := w.block.grid.Kernel.code.ins
	in := &ins[g.pc]
	if len(who) > 1 {
		other := &w.groups[who[1]]
		return w.failAt(in, bits.TrailingZeros32(g.mask), weakmem.BadInstruction, 0, fmt.Sprintf(
			"all 32 threads of a warp have to carry out what is .aligned, and those of %#x are at line %d instead", other.mask,
			ins[other.pc].ptx.Line))
	}
	if s := w.complete(in, g.mask); s != next {
		return s
	}
	if s := in.x.(*syncOp).together(w, in); s != next {
		return s
	}
	g.wait, g.value = running, 0
	g.pc++
	w.block.wake(w)
	return next
}

// sources adds the slots of registers to an instruction's.
func (c *compiler) sources(fr *frame, in *ptx.Instr, d *inst, ops ...ptx.Operand) {
	for _, r := range flatten(ops) {
		d.src = append(d.src, c.source(fr, in, r))
	}
}

// dests is sources for destinations.
func (c *compiler) dests(fr *frame, in *ptx.Instr, d *inst, ops ...ptx.Operand) {
	for _, r := range flatten(ops) {
		d.dst = append(d.dst, c.dest(fr, in, r))
	}
}

// fragments are the registers of an instruction on matrices, of each of four at most.
type fragments [4][8]*alu.Lanes

// look finds the registers in slots; i is the matrix.
func (f *fragments) look(w *warp, i int, slots []int32) []*alu.Lanes {
	for k, s := range slots {
		f[i][k] = w.slot(s)
	}
	return f[i][:len(slots)]
}
