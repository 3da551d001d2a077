package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A decoder compiles the instructions of one operation.
type decoder func(c *compiler, fr *frame, in *ptx.Instr)

// decoders are for instructions that package alu does not compute, by operation.
var decoders map[string]decoder

func init() {
	decoders = map[string]decoder{
		"bra": decodeBranch, "brx": decodeTable, "call": decodeCall,
		"ret": decodeReturn, "exit": decodeExit, "trap": simple(execTrap), "brkpt": simple(execTrap),
		"nanosleep": simple(execPause),

		"prefetch": simple(execNothing), "prefetchu": simple(execNothing), "applypriority": simple(execNothing),
		"discard": simple(execNothing), "pmevent": simple(execNothing), "setmaxnreg": simple(execNothing),
		"griddepcontrol": simple(execNothing),

		"ld": decodeLoad, "ldu": decodeLoad, "st": decodeStore, "atom": decodeAtomic, "red": decodeAtomic,
		"fence": decodeFence, "membar": decodeFence,
		"cvta": decodeAddress, "isspacep": decodeIsSpace, "mapa": decodeMap, "getctarank": decodeRank,

		"bar": decodeBarrier, "barrier": decodeBarrier, "mbarrier": decodeMbarrier, "cp": decodeCopy,
		"createpolicy": decodePolicy,
		"shfl":         decodeSync, "vote": decodeSync, "match": decodeSync, "redux": decodeSync,
		"elect": decodeSync, "activemask": decodeActive,

		"mma": decodeAligned(decodeProduct), "wmma": decodeAligned(decodeTile), "movmatrix": decodeAligned(decodeMoveMatrix),
		"ldmatrix": decodeAligned(decodeLoadMatrix), "stmatrix": decodeAligned(decodeStoreMatrix),
	}
}

// simple decodes instructions whose operands do not matter.
func simple(exec func(w *warp, in *inst, mask uint32) status) decoder {
	return func(c *compiler, fr *frame, in *ptx.Instr) { c.emit(fr, in, inst{exec: exec}) }
}

func execNothing(*warp, *inst, uint32) status { return next }
func execPause(*warp, *inst, uint32) status   { return pause }

func execTrap(w *warp, in *inst, mask uint32) status {
	return w.fail(in, mask, weakmem.BadInstruction, "trap")
}

func decodeBranch(c *compiler, fr *frame, in *ptx.Instr) {
	c.emit(fr, in, inst{exec: execBranch, x: label(in.Operands[0].Target)})
}

func execBranch(w *warp, in *inst, mask uint32) status {
	g := &w.groups[w.current]
	if mask == g.mask {
		g.pc = in.target
		return jumped
	}
	if in.meets > 0 {
		w.parts(in, g.mask)
	}
	w.part(mask, in.target)
	return next
}

func decodeTable(c *compiler, fr *frame, in *ptx.Instr) {
	var targets []label
	for _, l := range fr.f.Tables[in.Operands[1].Name] {
		targets = append(targets, label(fr.f.Labels[l]))
	}
	d := inst{exec: execTable, x: targets}
	c.sources(fr, in, &d, in.Operands[0])
	c.emit(fr, in, d)
}

func execTable(w *warp, in *inst, mask uint32) status {
	targets, index := in.x.([]int32), w.slot(in.src[0])
	for m := mask; m != 0; m &= m - 1 {
		if i := uint32(index[bits.TrailingZeros32(m)]); i >= uint32(len(targets)) {
			return w.fail(in, m, weakmem.BadInstruction, "index %d in a table of %d labels", i, len(targets))
		}
	}
	if in.meets > 0 {
		w.parts(in, w.groups[w.current].mask)
	}
	return w.scatter(mask, func(lane int) int32 { return targets[uint32(index[lane])] })
}

// scatter sends each thread of mask to an address of its own; others of the group go on.
func (w *warp) scatter(mask uint32, to func(lane int) int32) status {
	for mask != 0 {
		pc, same := to(bits.TrailingZeros32(mask)), uint32(0)
		for m := mask; m != 0; m &= m - 1 {
			if lane := bits.TrailingZeros32(m); to(lane) == pc {
				same |= 1 << lane
			}
		}
		mask &^= same
		g := &w.groups[w.current]
		if same == g.mask {
			g.pc = pc
			return jumped
		}
		w.part(same, pc)
	}
	return next
}

func decodeExit(c *compiler, fr *frame, in *ptx.Instr) {
	c.emit(fr, in, inst{exec: execExit, ends: true})
}

func execExit(w *warp, in *inst, mask uint32) status {
	g := &w.groups[w.current]
	w.live &^= mask
	w.leaveParted(mask)
	w.block.mem.Exit(w.index, mask)
	if g.mask &^= mask; g.mask == 0 {
		w.remove(w.current)
	} else {
		g.pc++
	}
	w.block.ended(w, mask)
	return gone
}
