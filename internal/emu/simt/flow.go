package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A decoder compiles the instructions of one operation.
type decoder func(c *compiler, fr *frame, in *ptx.Instr) error

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
	return func(c *compiler, fr *frame, in *ptx.Instr) error {
		c.emit(fr, in, inst{exec: exec})
		return nil
	}
}

func execNothing(*warp, *inst, uint32) status { return next }
func execPause(*warp, *inst, uint32) status   { return pause }

func execTrap(w *warp, in *inst, mask uint32) status {
	return w.fail(in, mask, weakmem.BadInstruction, "trap")
}

func decodeBranch(c *compiler, fr *frame, in *ptx.Instr) error {
	if len(in.Operands) != 1 || in.Operands[0].Kind != ptx.LabelOperand {
		return errorAt(in, "want a label")
	}
	c.emit(fr, in, inst{exec: execBranch, x: label(in.Operands[0].Target)})
	return nil
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

func decodeTable(c *compiler, fr *frame, in *ptx.Instr) error {
	if len(in.Operands) != 2 || in.Operands[1].Kind != ptx.NameOperand {
		return errorAt(in, "want an index and the name of a table")
	}
	var targets []label
	for _, l := range fr.f.Tables[in.Operands[1].Name] {
		targets = append(targets, label(fr.f.Labels[l]))
	}
	s, err := c.source(fr, in, in.Operands[0])
	if err != nil {
		return err
	}
	c.emit(fr, in, inst{exec: execTable, src: []int32{s}, x: targets})
	return nil
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

// A callOp is the part of a call that changes the private memory of a thread.
type callOp struct {
	callee *frame
	args   []move // into the callee's parameters
}

// A move is of bytes of private memory.
type move struct{ to, from, n int }

func decodeCall(c *compiler, fr *frame, in *ptx.Instr) error {
	if calls(in, setConditional) {
		return decodeSetConditional(c, fr, in)
	}
	if f := c.extern(in); f != nil {
		return decodeExtern(c, fr, in, f)
	}
	f, err := c.callee(in)
	if err != nil {
		return err
	}
	callee := c.frames[f]
	moves := func(args []ptx.Operand, params []ptx.Var, base int, in2 bool) ([]move, error) {
		if len(args) != len(params) {
			return nil, errorAt(in, "%d arguments or results, %s has %d", len(args), f.Name, len(params))
		}
		var all []move
		for i, a := range args {
			offset, ok := fr.callVar(a)
			if !ok || params[i].Space != ptx.Param {
				return nil, errorAt(in, "arguments and results have to be variables in .param")
			}
			m := move{to: base + params[i].Offset, from: offset, n: params[i].Size()}
			if !in2 {
				m.to, m.from = m.from, m.to
			}
			all = append(all, m)
		}
		return all, nil
	}
	args, err := moves(in.Operands[2].Elems, f.Params, callee.params, true)
	if err != nil {
		return err
	}
	results, err := moves(in.Operands[0].Elems, f.Results, callee.results, false)
	if err != nil {
		return err
	}
	c.emit(fr, in, inst{exec: execCall, dst: []int32{callee.ret}, x: &callOp{callee, args}})
	c.emit(fr, in, inst{exec: execResults, helper: true, x: results})
	return nil
}

// callVar is where a variable through which the function calls lies in private memory.
func (fr *frame) callVar(o ptx.Operand) (int, bool) {
	for _, v := range fr.f.Vars {
		if v.Name == o.Name && v.Space == ptx.Param && o.Kind == ptx.NameOperand {
			return fr.calls + v.Offset, true
		}
	}
	return 0, false
}

func execCall(w *warp, in *inst, mask uint32) status {
	w.own.move(mask, in.x.(*callOp).args)
	back := uint64(w.groups[w.current].pc + 1)
	ret := w.slot(in.dst[0])
	for m := mask; m != 0; m &= m - 1 {
		ret[bits.TrailingZeros32(m)] = back
	}
	return execBranch(w, in, mask)
}

func execResults(w *warp, in *inst, mask uint32) status {
	w.own.move(mask, in.x.([]move))
	return next
}

func decodeExit(c *compiler, fr *frame, in *ptx.Instr) error {
	c.emit(fr, in, inst{exec: execExit, ends: true})
	return nil
}

func decodeReturn(c *compiler, fr *frame, in *ptx.Instr) error {
	if fr.f.Entry {
		return decodeExit(c, fr, in)
	}
	c.emit(fr, in, inst{exec: execReturn, ends: true, src: []int32{fr.ret}})
	return nil
}

func execReturn(w *warp, in *inst, mask uint32) status {
	ret := w.slot(in.src[0])
	return w.scatter(mask, func(lane int) int32 { return int32(ret[lane]) })
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
