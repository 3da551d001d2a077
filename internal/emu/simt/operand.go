package simt

import (
	"fmt"
	"math"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// constant is the slot of a constant.
func (c *compiler) constant(k constant) int32 {
	i, ok := c.consts[k]
	if !ok {
		i = int32(len(c.code.consts))
		c.code.consts = append(c.code.consts, k)
		c.consts[k] = i
	}
	return ^i
}

// flatten replaces vectors and pairs by their elements.
func flatten(ops []ptx.Operand) []ptx.Operand {
	var flat []ptx.Operand
	for _, o := range ops {
		if o.Kind == ptx.VecOperand || o.Kind == ptx.PairOperand {
			flat = append(flat, o.Elems...)
		} else {
			flat = append(flat, o)
		}
	}
	return flat
}

// width is the width of a register in bits, 0 for other operands.
func (c *compiler) width(fr *frame, o ptx.Operand) int {
	if o.Kind != ptx.RegOperand {
		return 0
	}
	return fr.f.Regs[o.Reg].Type.Bits()
}

// dest is the slot of a destination.
func (c *compiler) dest(fr *frame, in *ptx.Instr, o ptx.Operand) int32 {
	if o.Kind == ptx.SinkOperand {
		return c.scratch("_")
	}
	return fr.regs + int32(o.Reg)
}

// scratch is a slot by a name that is not of a special register.
func (c *compiler) scratch(name string) int32 {
	s, ok := c.specials[name]
	if !ok {
		s = c.slots(1)
		c.specials[name] = s
	}
	return s
}

// source is the slot of a source. It emits the instructions that compute it first.
func (c *compiler) source(fr *frame, in *ptx.Instr, o ptx.Operand) int32 {
	switch o.Kind {
	case ptx.RegOperand:
		r := fr.regs + int32(o.Reg)
		if o.Not {
			not := c.scratch(fmt.Sprint("!", len(c.code.ins)%4))
			c.code.ins = append(c.code.ins, inst{alu: runNot, dst: []int32{not}, src: []int32{r}, guard: noSlot, helper: true,
				ptx: in})
			return not
		}
		return r
	case ptx.ImmOperand:
		return c.constant(constant{value: immediate(in, o)})
	case ptx.NameOperand:
		k, space := c.variable(fr, in, o.Name, o.Imm)
		if space == ptx.Local && fr.activates {
			return c.inActivation(fr, in, k.value)
		}
		if space == ptx.Shared && c.code.clusters {
			return c.sharedAddress(k.value)
		}
		return c.constant(k)
	case ptx.SpecialOperand:
		return c.special(fr, in, o.Name)
	}
	refuse(in, "an operand of this kind cannot be read")
	return 0
}

// runNot negates a predicate.
func runNot(mask uint32, dst, src []*alu.Lanes) {
	d, a := dst[0], src[0]
	for i := range d {
		if mask>>i&1 != 0 {
			d[i] = a[i] ^ 1
		}
	}
}

// runAdd adds.
func runAdd(mask uint32, dst, src []*alu.Lanes) {
	d, a, b := dst[0], src[0], src[1]
	for i := range d {
		if mask>>i&1 != 0 {
			d[i] = a[i] + b[i]
		}
	}
}

// immediate is an immediate operand as the instruction's type has it.
func immediate(in *ptx.Instr, o ptx.Operand) uint64 {
	if o.Float == ptx.F64 && len(in.Types) > 0 {
		t := in.Types[0]
		if in.Op == "cvt" || in.Op == "set" {
			t = in.Types[len(in.Types)-1]
		}
		if t == ptx.F32 {
			return uint64(math.Float32bits(float32(math.Float64frombits(o.Imm))))
		}
	}
	return o.Imm
}

// address is the slot of the address of a variable, in the variable's space: in shared memory, of the block's own.
func (c *compiler) address(fr *frame, in *ptx.Instr, name string, add uint64) int32 {
	k, _ := c.variable(fr, in, name, add)
	return c.constant(k)
}

// variable is the address of a variable, plus a number.
func (c *compiler) variable(fr *frame, in *ptx.Instr, name string, add uint64) (constant, ptx.Space) {
	at := func(space ptx.Space, offset int) (constant, ptx.Space) {
		return constant{value: uint64(offset) + add}, space
	}
	for _, v := range fr.f.Params {
		if v.Name == name {
			return at(ptx.Param, fr.params+v.Offset)
		}
	}
	for _, v := range fr.f.Results {
		if v.Name == name {
			return at(ptx.Param, fr.results+v.Offset)
		}
	}
	for i, v := range fr.f.Vars {
		if v.Name != name {
			continue
		}
		switch {
		case v.Space == ptx.Shared && v.Count == 0:
			return at(v.Space, c.code.dynamic)
		case v.Space == ptx.Shared:
			return at(v.Space, fr.shared[i])
		case v.Space == ptx.Local:
			return at(v.Space, fr.locals+v.Offset)
		case v.Space == ptx.Param:
			return at(v.Space, fr.calls+v.Offset)
		}
	}
	for _, v := range c.m.Vars {
		if v.Name != name {
			continue
		}
		switch {
		case v.Space == ptx.Shared && v.Count == 0:
			return at(v.Space, c.code.dynamic)
		case v.Space == ptx.Shared:
			return at(v.Space, c.shared[name])
		}
		return constant{value: add, name: name}, v.Space
	}
	for _, f := range c.m.Funcs {
		if f.Name == name {
			return constant{value: add, name: name}, ptx.Generic
		}
	}
	refuse(in, "no variable %s here", name)
	return constant{}, ptx.Generic
}
