package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A pointer is an operand in brackets of an instruction that has several.
type pointer struct {
	offset uint64 // to add to the register or constant
	narrow bool   // it is a register of 32 bits
	space  ptx.Space
}

// newPointer decodes an operand in brackets, and the slot of what its address begins with.
func (c *compiler) newPointer(fr *frame, in *ptx.Instr, o ptx.Operand, space ptx.Space) (pointer, int32, error) {
	p := pointer{space: space}
	switch {
	case o.Kind != ptx.AddrOperand:
		return p, 0, errorAt(in, "want an address")
	case o.Name != "":
		s, err := c.address(fr, in, o.Name, o.Imm)
		return p, s, err
	case o.Reg >= 0:
		p.offset, p.narrow = o.Imm, c.width(fr, ptx.Operand{Kind: ptx.RegOperand, Reg: o.Reg}) == 32
		return p, fr.regs + int32(o.Reg), nil
	}
	return p, c.constant(constant{value: o.Imm}), nil
}

// at is the address of a lane.
func (w *warp) at(p *pointer, base int32, lane int) uint64 {
	v := w.slot(base)[lane] + p.offset
	if p.narrow {
		v &= 1<<32 - 1
	}
	return v
}

// inShared is the address of a lane as an offset in shared memory.
func (w *warp) inShared(in *inst, p *pointer, base int32, lane int) (uint64, status) {
	v := w.at(p, base, lane)
	if p.space != ptx.Generic {
		return v, next
	}
	if v&windowMask != sharedWindow {
		return 0, w.failAt(in, lane, weakmem.BadInstruction, v, "the address is not in shared memory")
	}
	return v &^ windowMask, next
}

// allInShared are the addresses of lanes as offsets in shared memory.
func (w *warp) allInShared(in *inst, p *pointer, mask uint32) (addr alu.Lanes, s status) {
	for l := mask; l != 0 && s == next; l &= l - 1 {
		lane := bits.TrailingZeros32(l)
		addr[lane], s = w.inShared(in, p, in.src[0], lane)
	}
	return addr, s
}
