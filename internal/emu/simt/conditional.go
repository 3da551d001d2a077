package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// setConditional is the function of CUDA's device library that sets the value of a
// conditional node of a graph: (.param .b64 handle, .param .b32 value).
const setConditional = "cudaGraphSetConditional"

// calls reports whether an instruction calls a function by its name.
func calls(in *ptx.Instr, name string) bool {
	return in.Op == "call" && len(in.Operands) == 3 && in.Operands[1].Kind == ptx.NameOperand &&
		in.Operands[1].Name == name
}

func decodeSetConditional(c *compiler, fr *frame, in *ptx.Instr) error {
	args := in.Operands[2].Elems
	if len(args) != 2 {
		return errorAt(in, "want a handle and a value")
	}
	var at [2]int
	for i, a := range args {
		offset, ok := fr.callVar(a)
		if !ok {
			return errorAt(in, "arguments have to be variables in .param")
		}
		at[i] = offset
	}
	c.emit(fr, in, inst{exec: execSetConditional, x: at})
	return nil
}

func execSetConditional(w *warp, in *inst, mask uint32) status {
	var v [2]alu.Lanes
	for i, at := range in.x.([2]int) {
		var addr alu.Lanes
		fill(&addr, mask, uint64(at))
		if lane, kind, why := w.own.load(mask, &addr, 8>>i, []*alu.Lanes{&v[i]}); why != "" {
			return w.failAt(in, lane, kind, uint64(at), why)
		}
	}
	g := w.block.grid
	set := g.world.cfg.SetConditional
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if set == nil || !set(g.Device, v[0][lane], uint32(v[1][lane])) {
			return w.failAt(in, lane, weakmem.BadInstruction, 0, "no conditional handle of this context")
		}
	}
	return next
}
