package simt

import (
	"fmt"
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
	own    bool // shared memory has to be the block's: .shared::cta
}

// pointer decodes an operand in brackets. What its address begins with becomes a source of the instruction.
func (c *compiler) pointer(fr *frame, in *ptx.Instr, d *inst, o ptx.Operand, space ptx.Space) pointer {
	p := pointer{space: space, own: space == ptx.Shared && !in.Has(clusterSpace)}
	base := fr.regs + int32(o.Reg)
	switch {
	case o.Name != "":
		base = c.address(fr, in, o.Name, o.Imm)
	case o.Reg >= 0:
		p.offset, p.narrow = o.Imm, c.width(fr, ptx.Operand{Kind: ptx.RegOperand, Reg: o.Reg}) == 32
	default:
		base = c.constant(constant{value: o.Imm})
	}
	d.src = append(d.src, base)
	return p
}

// at is the address of a lane.
func (w *warp) at(p *pointer, base int32, lane int) uint64 {
	v := w.slot(base)[lane] + p.offset
	if p.narrow {
		v &= 1<<32 - 1
	}
	return v
}

// inShared is the block in whose shared memory the address of a lane is, and the offset there.
func (w *warp) inShared(in *inst, p *pointer, base int32, lane int) (*block, uint64, status) {
	v := w.at(p, base, lane)
	if p.space == ptx.Generic {
		if v&windowMask != sharedWindow {
			return nil, 0, w.failAt(in, lane, weakmem.BadInstruction, v, notShared)
		}
		v &^= windowMask
	}
	if p.own {
		at, s := w.reachOwn(in, lane, v)
		return w.block, at, s
	}
	return w.reach(in, lane, v)
}

// beside is the offset of a lane's address that has to be in the shared memory of a block: a barrier beside what is
// copied there.
func (w *warp) beside(in *inst, p *pointer, base int32, lane int, to *block) (uint64, status) {
	b, at, s := w.inShared(in, p, base, lane)
	if s == next && b != to {
		return 0, w.failAt(in, lane, weakmem.BadInstruction, at, fmt.Sprintf(
			"the barrier is in the shared memory of block %s, and the copy goes to block %s", triple(b.index), triple(to.index)))
	}
	return at, s
}

// inOwn is the address of a lane as an offset in the block's own shared memory.
func (w *warp) inOwn(in *inst, p *pointer, base int32, lane int) (uint64, status) {
	own := *p
	own.own = true
	_, at, s := w.inShared(in, &own, base, lane)
	return at, s
}

// allInOwn are the addresses of lanes as offsets in the block's own shared memory.
func (w *warp) allInOwn(in *inst, p *pointer, mask uint32) (addr alu.Lanes, s status) {
	for l := mask; l != 0 && s == next; l &= l - 1 {
		lane := bits.TrailingZeros32(l)
		addr[lane], s = w.inOwn(in, p, in.src[0], lane)
	}
	return addr, s
}
