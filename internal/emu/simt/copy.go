package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A copyOp is an instruction that begins an asynchronous copy. Its sources are the
// addresses dst, src and, of one that tells a barrier, bar; then the blocks of a multicast, and the size in bytes.
type copyOp struct {
	dst, src, bar pointer
	signals       bool // tells a barrier
	multicast     bool // goes to each block of a mask, the last source but the size
	bulk          bool
	bytes         int  // of cp.async, of which the size is what it reads
	sized         bool // there is a size
	toShared      bool
	update        func(old, v uint64) uint64 // cp.reduce
	size          int                        // of its elements
}

// bulkUnit is what sizes and addresses of bulk copies are multiples of.
const bulkUnit = 16

func decodeCopy(c *compiler, fr *frame, in *ptx.Instr) {
	bulk := in.Has("bulk")
	group := func(exec func(*warp, *inst, uint32) status) {
		n := 0
		if len(in.Operands) > 0 {
			n = int(min(in.Operands[0].Imm, 1<<30))
		}
		c.emit(fr, in, inst{exec: exec, x: groupOp{bulk, in.Has("read"), n}})
	}
	switch {
	case in.Has("prefetch"):
		c.emit(fr, in, inst{exec: execNothing})
	case in.Has("commit_group"):
		group(execCommit)
	case in.Has("wait_group"):
		group(execWaitGroup)
	case in.Has("wait_all"):
		group(execWaitAll)
	case in.Has("mbarrier"):
		decodeCopyArrive(c, fr, in)
	case bulk:
		decodeBulkCopy(c, fr, in)
	default:
		decodePlainCopy(c, fr, in)
	}
}

// decodeBulkCopy decodes cp.async.bulk and cp.reduce.async.bulk, between global and shared memory or from shared memory
// to that of another block.
func decodeBulkCopy(c *compiler, fr *frame, in *ptx.Instr) {
	op := &copyOp{bulk: true, sized: true, signals: in.Has("mbarrier::complete_tx::bytes"),
		multicast: in.Has("multicast::cluster")}
	op.toShared = op.signals
	from, to := ptx.Global, ptx.Shared
	if !op.toShared {
		from, to = to, from
	} else if in.Has(clusterSpace) && in.Has("shared::cta") {
		from = ptx.Shared
	}
	if in.Mods[0] == "reduce" {
		op.update = reduction(in)
		op.size = in.Types[0].Size()
	}
	d := inst{exec: execCopy, x: op}
	op.dst = c.pointer(fr, in, &d, in.Operands[0], to)
	op.src = c.pointer(fr, in, &d, in.Operands[1], from)
	op.src.own = true
	if op.signals {
		op.bar = c.pointer(fr, in, &d, in.Operands[3], ptx.Shared)
	}
	if op.multicast {
		c.sources(fr, in, &d, in.Operands[4])
	}
	c.sources(fr, in, &d, in.Operands[2])
	c.emit(fr, in, d)
}

// decodePlainCopy decodes cp.async, from global to shared memory. Its last operands are
// how many bytes it reads, the rest being zeros, and a cache policy; both may be missing.
func decodePlainCopy(c *compiler, fr *frame, in *ptx.Instr) {
	op := &copyOp{bytes: int(in.Operands[2].Imm), toShared: true}
	if b := op.bytes; b != 16 && (in.Has("cg") || b != 4 && b != 8) {
		refuse(in, "cp.async copies 4, 8 or 16 bytes, with .cg 16")
	}
	d := inst{exec: execCopy, x: op}
	op.dst = c.pointer(fr, in, &d, in.Operands[0], ptx.Shared)
	op.src = c.pointer(fr, in, &d, in.Operands[1], ptx.Global)
	rest := in.Operands[3:]
	if in.Has("L2::cache_hint") {
		rest = rest[:len(rest)-1]
	}
	if op.sized = len(rest) > 0; op.sized {
		c.sources(fr, in, &d, rest[0])
	}
	c.emit(fr, in, d)
}

// reduction is what cp.reduce does to an element.
func reduction(in *ptx.Instr) func(old, v uint64) uint64 {
	t := in.Types[0]
	a := newAtomic(in, access{size: t.Size()})
	f := a.f
	if t == ptx.F32 && a.near != nil {
		f = a.near // subnormal numbers stay, as an H200 says, where red.global flushes them to zero
	}
	return func(old, v uint64) uint64 { return f(old, v, 0) }
}

// decodePolicy decodes createpolicy. There are no caches here, and any policy is 0.
func decodePolicy(c *compiler, fr *frame, in *ptx.Instr) {
	d := c.dest(fr, in, in.Operands[0])
	c.emit(fr, in, inst{dst: []int32{d}, alu: func(mask uint32, dst, _ []*alu.Lanes) { fill(dst[0], mask, 0) }})
}

// execCopy begins a copy in each thread.
func execCopy(w *warp, in *inst, mask uint32) status {
	op := in.x.(*copyOp)
	for m := mask; m != 0; m &= m - 1 {
		if s := w.copy(in, op, bits.TrailingZeros32(m)); s != next {
			return s
		}
	}
	return next
}

func (w *warp) copy(in *inst, op *copyOp, lane int) status {
	plan := weakmem.Plan{ToShared: op.toShared, FromShared: op.src.space == ptx.Shared,
		Bytes: op.bytes, Align: op.bytes, Async: op.bulk, Line: in.ptx.Line, Update: op.update, Size: op.size,
	}
	var to *block
	var s status
	if to, plan.Dst, s = w.place(in, &op.dst, in.src[0], lane); s != next {
		return s
	}
	if _, plan.Src, s = w.place(in, &op.src, in.src[1], lane); s != next {
		return s
	}
	n := op.bytes
	if op.sized {
		n = int(uint32(w.slot(in.src[len(in.src)-1])[lane]))
	}
	if !op.bulk {
		if n > op.bytes {
			return w.failAt(in, lane, weakmem.BadInstruction, plan.Src, "a copy of fewer bytes than it is to read")
		}
		plan.Bytes, plan.Zeros = n, op.bytes-n
		t := w.launch(in, lane, plan, to, nil)
		if t == nil {
			return gone
		}
		g := &w.copiesOf(lane).plain
		g.open = append(g.open, t)
		return next
	}
	if plan.Bytes, plan.Align = n, bulkUnit; n%bulkUnit != 0 || n == 0 {
		return w.failAt(in, lane, weakmem.BadInstruction, plan.Src, "the size of a bulk copy has to be a multiple of 16")
	}
	if op.signals {
		plan.Signals = true
		if plan.Barrier, s = w.beside(in, &op.bar, in.src[2], lane, to); s != next {
			return s
		}
		if op.multicast {
			return w.multicast(in, lane, plan)
		}
		return w.copyTo(in, lane, plan, to)
	}
	t := w.launch(in, lane, plan, to, nil)
	if t == nil {
		return gone
	}
	g := &w.copiesOf(lane).bulk
	g.open = append(g.open, t)
	return next
}

// copyTo begins a copy to the shared memory of a block, whose barrier it tells.
func (w *warp) copyTo(in *inst, lane int, plan weakmem.Plan, to *block) status {
	bar, s := w.mbarrierOf(in, lane, to, plan.Barrier)
	if s != next {
		return s
	}
	plan.BarrierFenced = bar.fenced
	if to != w.block {
		plan.To = to.mem
	}
	if w.launch(in, lane, plan, to, bar) == nil {
		return gone
	}
	return next
}

// multicast copies to the same offset in each block of the cluster whose bit is set.
func (w *warp) multicast(in *inst, lane int, plan weakmem.Plan) status {
	blocks := []*block{w.block}
	if c := w.block.cluster; c != nil {
		blocks = c.blocks
	}
	for m := w.slot(in.src[3])[lane] & 0xffff; m != 0; m &= m - 1 {
		rank := bits.TrailingZeros64(m)
		if rank >= len(blocks) {
			return w.failAt(in, lane, weakmem.BadInstruction, plan.Dst, w.noBlock(rank))
		}
		if s := w.copyTo(in, lane, plan, blocks[rank]); s != next {
			return s
		}
	}
	return next
}

// place is an address of a copy, in shared memory as an offset in that of a block.
func (w *warp) place(in *inst, p *pointer, base int32, lane int) (*block, uint64, status) {
	if p.space == ptx.Shared {
		return w.inShared(in, p, base, lane)
	}
	return w.block, w.at(p, base, lane), next
}
