package simt

import (
	"fmt"
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An address of shared memory has from this bit on the rank of its block in the cluster plus one, or 0 for the block's
// own. The rank is not in the addresses of a cluster of one block, nor where the kernel names no cluster.
const rankShift = 24

// withRank is an address in the shared memory of a block, given that in another one's.
func withRank(addr uint64, rank int) uint64 {
	return addr&^(0xff<<rankShift) | uint64(rank+1)<<rankShift
}

// window is the address at which the cluster knows the block's shared memory.
func (b *block) window() uint64 {
	if b.grid.cluster.size() == 1 {
		return 0
	}
	return withRank(0, b.rank)
}

// sharedAddress is the slot of an address in the block's shared memory as all blocks of the cluster know it.
func (c *compiler) sharedAddress(offset uint64) int32 {
	name := fmt.Sprint("shared ", offset)
	s, ok := c.specials[name]
	if !ok {
		s = c.scratch(name)
		c.code.specials = append(c.code.specials, special{s, one(func(w *warp) int {
			return int(w.block.window() + offset)
		})})
	}
	return s
}

// namesCluster reports whether the kernel or a function that it calls has instructions that are about other blocks of
// its cluster.
func (c *compiler) namesCluster() bool {
	for _, fr := range c.order {
		for i := range fr.f.Body {
			if in := &fr.f.Body[i]; in.Op == "mapa" || in.Op == "getctarank" || in.Op == "barrier" && in.Has("cluster") {
				return true
			}
		}
	}
	return false
}

// reach finds the block whose shared memory an address is in, and the offset there.
func (w *warp) reach(in *inst, lane int, addr uint64) (*block, uint64, status) {
	rank := int(addr >> rankShift & 0xff)
	if rank == 0 || w.block.cluster == nil {
		return w.block, addr, next
	}
	if rank > len(w.block.cluster.blocks) {
		return nil, 0, w.failAt(in, lane, weakmem.BadInstruction, addr, w.noBlock(rank-1))
	}
	return w.block.cluster.blocks[rank-1], addr &^ (0xff << rankShift), next
}

// reachOwn is reach for what has to be in the block's own shared memory.
func (w *warp) reachOwn(in *inst, lane int, addr uint64) (uint64, status) {
	b, at, s := w.reach(in, lane, addr)
	if s == next && b != w.block {
		return 0, w.failAt(in, lane, weakmem.BadInstruction, addr, fmt.Sprintf(
			"the address is in the shared memory of block %s: this is for the block's own", triple(b.index)))
	}
	return at, s
}

func (w *warp) noBlock(rank int) string {
	return fmt.Sprintf("there is no block of rank %d in the cluster: it has %d", rank, w.block.grid.cluster.size())
}

// byBlock divides the threads of an access to shared memory by the block whose memory it is, and turns addresses into
// offsets. own says that it has to be the threads' own.
func (w *warp) byBlock(in *inst, mask uint32, addr *alu.Lanes, own bool,
	each func(of *weakmem.Block, mask uint32, addr *alu.Lanes) status) status {
	offsets := *addr
	var of [32]*block
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		var s status
		if own {
			of[lane] = w.block
			offsets[lane], s = w.reachOwn(in, lane, addr[lane])
		} else {
			of[lane], offsets[lane], s = w.reach(in, lane, addr[lane])
		}
		if s != next {
			return s
		}
	}
	for rest := mask; rest != 0; {
		b, same := of[bits.TrailingZeros32(rest)], uint32(0)
		for m := rest; m != 0; m &= m - 1 {
			if lane := bits.TrailingZeros32(m); of[lane] == b {
				same |= 1 << lane
			}
		}
		rest &^= same
		if s := each(b.mem, same, &offsets); s != next {
			return s
		}
	}
	return next
}

// decodeMap decodes mapa, the address of shared memory in a block of the cluster.
func decodeMap(c *compiler, fr *frame, in *ptx.Instr) {
	d := inst{exec: execMap, x: in.Space == ptx.Generic}
	c.dests(fr, in, &d, in.Operands[0])
	c.sources(fr, in, &d, in.Operands[1:]...)
	c.emit(fr, in, d)
}

func execMap(w *warp, in *inst, mask uint32) status {
	to, from, rank := w.slot(in.dst[0]), w.slot(in.src[0]), w.slot(in.src[1])
	n := w.block.grid.cluster.size()
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		addr, r := from[lane], int(uint32(rank[lane]))
		switch {
		case r >= n:
			return w.failAt(in, lane, weakmem.BadInstruction, addr, w.noBlock(r))
		case in.x.(bool) && addr&windowMask != sharedWindow:
			return w.failAt(in, lane, weakmem.BadInstruction, addr, notShared)
		case n > 1:
			addr = withRank(addr, r)
		}
		to[lane] = addr
	}
	return next
}

const notShared = "the address is not in shared memory"

// decodeRank decodes getctarank, the rank of the block of an address.
func decodeRank(c *compiler, fr *frame, in *ptx.Instr) {
	d := inst{exec: execRank, x: in.Space == ptx.Generic}
	c.dests(fr, in, &d, in.Operands[0])
	c.sources(fr, in, &d, in.Operands[1])
	c.emit(fr, in, d)
}

func execRank(w *warp, in *inst, mask uint32) status {
	to, from := w.slot(in.dst[0]), w.slot(in.src[0])
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if in.x.(bool) && from[lane]&windowMask != sharedWindow {
			return w.failAt(in, lane, weakmem.BadInstruction, from[lane], notShared)
		}
		b, _, s := w.reach(in, lane, from[lane])
		if s != next {
			return s
		}
		to[lane] = uint64(b.rank)
	}
	return next
}

// execIsOwn is isspacep.shared: whether a generic address is in the block's own shared memory.
func execIsOwn(w *warp, in *inst, mask uint32) status {
	to, from, own := w.slot(in.dst[0]), w.slot(in.src[0]), uint64(w.block.rank+1)
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		rank := from[lane] >> rankShift & 0xff
		to[lane] = uint64(b2i(from[lane]&windowMask == sharedWindow && (rank == 0 || rank == own)))
	}
	return next
}
