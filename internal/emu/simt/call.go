package simt

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A callOp is the part of a call that changes the private memory of a thread.
type callOp struct {
	callee *frame
	args   []move // into the callee's parameters
}

// A byAddress is a call of what a register says.
type byAddress map[uint64]*callOp

// A move is of bytes of private memory.
type move struct{ to, from, n int }

func decodeCall(c *compiler, fr *frame, in *ptx.Instr) {
	if in.Operands[1].Kind == ptx.RegOperand {
		decodeIndirect(c, fr, in)
		return
	}
	if f := c.extern(in); f != nil {
		decodeExtern(c, fr, in, f)
		return
	}
	callee := c.frames[c.callee(in)]
	args, results := c.moves(fr, in, callee)
	d := inst{exec: execCall, x: &callOp{callee, args}}
	if callee.activates {
		d.exec = execActivate
	}
	c.emit(fr, in, d)
	c.emit(fr, in, inst{exec: execResults, helper: true, x: results})
}

// moves are those of arguments into the callee's parameters, and of its results back.
func (c *compiler) moves(fr *frame, in *ptx.Instr, callee *frame) (args, results []move) {
	pairs := func(given []ptx.Operand, vars []ptx.Var, base int, back bool) (all []move) {
		for i, a := range given {
			m := move{to: base + vars[i].Offset, from: fr.callVar(in, a), n: vars[i].Size()}
			if back {
				m.to, m.from = m.from, m.to
			}
			all = append(all, m)
		}
		return all
	}
	from := callee.results
	if callee.activates {
		from = c.code.out
	}
	return pairs(in.Operands[2].Elems, callee.f.Params, callee.params, false),
		pairs(in.Operands[0].Elems, callee.f.Results, from, true)
}

// decodeIndirect decodes a call through a register: of any function that the module takes the address of and that has
// the prototype.
func decodeIndirect(c *compiler, fr *frame, in *ptx.Instr) {
	reg := c.source(fr, in, in.Operands[1])
	targets, results := byAddress{}, []move(nil)
	for i, f := range c.m.Funcs {
		if callee := c.frames[f]; callee != nil && callee.activates && suits(in, fr.f, f) {
			args, back := c.moves(fr, in, callee)
			targets[functionAddress(i)] = &callOp{callee, args}
			results = back
		}
	}
	c.emit(fr, in, inst{exec: execIndirect, src: []int32{reg}, x: targets})
	c.emit(fr, in, inst{exec: execResults, helper: true, x: results})
}

// callVar is where a variable through which the function calls lies in private memory.
func (fr *frame) callVar(in *ptx.Instr, o ptx.Operand) int {
	v := fr.passing(o.Name)
	if v == nil {
		refuse(in, "arguments and results have to be variables in .param")
	}
	return fr.calls + v.Offset
}

// passing is a variable through which the function calls, nil if there is none of the name.
func (fr *frame) passing(name string) *ptx.Var {
	i := slices.IndexFunc(fr.f.Vars, func(v ptx.Var) bool { return v.Name == name && v.Space == ptx.Param })
	if i < 0 {
		return nil
	}
	return &fr.f.Vars[i]
}

// enter has a thread begin the callee, to go on at pc afterwards.
func (w *warp) enter(in *inst, op *callOp, lane int, pc int32) status {
	if op.callee.activates && !w.activate(op.callee, lane) {
		return w.overflow(in, op.callee, lane)
	}
	w.own.move(1<<lane, op.args)
	w.movePrivate(1<<lane, op.args)
	w.slot(op.callee.ret)[lane] = uint64(pc)
	return next
}

func execCall(w *warp, in *inst, mask uint32) status {
	op := in.x.(*callOp)
	w.own.move(mask, op.args)
	w.movePrivate(mask, op.args)
	back := uint64(w.groups[w.current].pc + 1)
	ret := w.slot(op.callee.ret)
	for m := mask; m != 0; m &= m - 1 {
		ret[bits.TrailingZeros32(m)] = back
	}
	return execBranch(w, in, mask)
}

func execActivate(w *warp, in *inst, mask uint32) status {
	back := w.groups[w.current].pc + 1
	for m := mask; m != 0; m &= m - 1 {
		if s := w.enter(in, in.x.(*callOp), bits.TrailingZeros32(m), back); s != next {
			return s
		}
	}
	return execBranch(w, in, mask)
}

func execIndirect(w *warp, in *inst, mask uint32) status {
	targets, back := in.x.(byAddress), w.groups[w.current].pc+1
	addr := *w.slot(in.src[0]) // an activation of this very function has registers of its own
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		op := targets[addr[lane]]
		if op == nil {
			return w.failAt(in, lane, weakmem.BadCall, addr[lane], fmt.Sprintf(
				"no function of this prototype has the address %#x", addr[lane]))
		}
		if s := w.enter(in, op, lane, back); s != next {
			return s
		}
	}
	return w.scatter(mask, func(lane int) int32 { return targets[addr[lane]].callee.at[0] })
}

func execResults(w *warp, in *inst, mask uint32) status {
	w.own.move(mask, in.x.([]move))
	w.movePrivate(mask, in.x.([]move))
	return next
}

// returns makes an instruction the function's return.
func (fr *frame) returns(d inst) inst {
	d.exec, d.src, d.ends = execReturn, []int32{fr.ret}, true
	if fr.activates {
		d.exec, d.x = execDeactivate, fr
		if fr.sp != noSlot {
			d.src = append(d.src, fr.sp)
		}
	}
	return d
}

func decodeReturn(c *compiler, fr *frame, in *ptx.Instr) {
	if fr.f.Entry {
		decodeExit(c, fr, in)
		return
	}
	c.emit(fr, in, fr.returns(inst{}))
}

func execReturn(w *warp, in *inst, mask uint32) status {
	ret := w.slot(in.src[0])
	return w.scatter(mask, func(lane int) int32 { return int32(ret[lane]) })
}

func execDeactivate(w *warp, in *inst, mask uint32) status {
	fr, back := in.x.(*frame), *w.slot(in.src[0])
	for m := mask; m != 0; m &= m - 1 {
		w.deactivate(fr, bits.TrailingZeros32(m))
	}
	return w.scatter(mask, func(lane int) int32 { return int32(back[lane]) })
}
