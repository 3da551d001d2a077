package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// decodeMap decodes mapa, the address of shared memory in a block of the cluster. Here a cluster is one block.
func decodeMap(c *compiler, fr *frame, in *ptx.Instr) error {
	d := inst{exec: execMap}
	if err := c.dests(fr, in, &d, in.Operands[0]); err != nil {
		return err
	}
	for _, o := range in.Operands[1:] {
		if err := c.sources(fr, in, &d, o); err != nil {
			return err
		}
	}
	c.emit(fr, in, d)
	return nil
}

func execMap(w *warp, in *inst, mask uint32) status {
	to, from, rank := w.slot(in.dst[0]), w.slot(in.src[0]), w.slot(in.src[1])
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if r := uint32(rank[lane]); r != 0 {
			return w.failAt(in, lane, weakmem.BadInstruction, from[lane],
				"there is no such block in the cluster: here a cluster is one block, of rank 0")
		}
		to[lane] = from[lane]
	}
	return next
}

// decodeRank decodes getctarank, the block of an address.
func decodeRank(c *compiler, fr *frame, in *ptx.Instr) error {
	d := inst{alu: func(mask uint32, dst, _ []*alu.Lanes) { fill(dst[0], mask, 0) }}
	if err := c.dests(fr, in, &d, in.Operands[0]); err != nil {
		return err
	}
	c.emit(fr, in, d)
	return nil
}
