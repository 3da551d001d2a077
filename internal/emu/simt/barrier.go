package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A barrier is one of the 16 of a block. Threads arrive one by one, of any warp.
// Without a thread count it waits for all threads of the block that have not ended, as
// __syncthreads does since Volta; with a count it waits for that number of arrivals,
// and threads that have ended do not count.
type barrier struct {
	arrived int
	count   int      // of the instruction, 0 without
	masks   []uint32 // of each warp, the threads that arrived
	any     bool     // of bar.red
	every   bool
	sum     int
}

func (b *barrier) clear() {
	clear(b.masks)
	b.arrived, b.count, b.any, b.every, b.sum = 0, 0, false, true, 0
}

// A barrierOp is an instruction of a barrier. The sources are its id, then the thread
// count if there is one, then the predicate of bar.red.
type barrierOp struct {
	counted bool
	arrive  bool   // does not wait
	aligned bool   // all threads of a warp have to arrive at the same instruction
	red     string // "popc", "and", "or" or ""
}

func decodeBarrier(c *compiler, fr *frame, in *ptx.Instr) {
	if in.Has("warp") {
		decodeSync(c, fr, in)
		return
	}
	if in.Has("cluster") {
		decodeClusterBarrier(c, fr, in)
		return
	}
	op := &barrierOp{arrive: in.Has("arrive"), aligned: in.Op == "bar" || in.Has("aligned")}
	d := inst{exec: execBarrier, x: op}
	ops := in.Operands
	if in.Has("red") {
		for _, m := range in.Mods {
			if m == "popc" || m == "and" || m == "or" {
				op.red = m
			}
		}
		c.dests(fr, in, &d, ops[0])
		ops = ops[1:]
	}
	op.counted = len(ops)-b2i(op.red != "") == 2
	c.sources(fr, in, &d, ops...)
	c.emit(fr, in, d)
}

func execBarrier(w *warp, in *inst, mask uint32) status {
	op := in.x.(*barrierOp)
	first := bits.TrailingZeros32(mask)
	id, count := w.slot(in.src[0])[first], uint64(0)
	if op.counted {
		count = w.slot(in.src[1])[first]
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if w.slot(in.src[0])[lane] != id || op.counted && w.slot(in.src[1])[lane] != count {
			return w.failAt(in, lane, weakmem.BadInstruction, 0, "threads of a warp name different barriers or thread counts")
		}
	}
	if id > 15 {
		return w.fail(in, mask, weakmem.BadInstruction, "barrier %d: there are 16", id)
	}
	bar := &w.block.bars[id]
	switch {
	case count%32 != 0 || op.counted && count == 0 || count > uint64(align(w.block.grid.threads(), 32)):
		return w.fail(in, mask, weakmem.BadInstruction, "barrier for %d threads: want a multiple of 32, at most the block's",
			count)
	case bar.arrived > 0 && bar.count != int(count):
		return w.fail(in, mask, weakmem.BadInstruction, "barrier %d for %d threads, where others wait for %d (0: all)", id,
			count, bar.count)
	case bar.masks[w.index]&mask != 0:
		return w.fail(in, bar.masks[w.index]&mask, weakmem.BadInstruction, "arrives twice at barrier %d", id)
	case w.elsewhere(atBarrier, op.aligned):
		return w.fail(in, mask, weakmem.BadInstruction,
			"bar.sync needs all threads of a warp at the same instruction, others of this warp wait at another one")
	}
	if op.aligned && !w.gathers(in, mask) {
		return gone
	}
	if op.arrive && op.aligned && mask != w.live {
		w.hold(mask, atBarrier, uint32(id)+arriving)
		w.arriveTogether()
		return gone
	}
	bar.arrive(w, mask, int(count))
	if op.red != "" {
		p := w.slot(in.src[len(in.src)-1])
		for m := mask; m != 0; m &= m - 1 {
			set := p[bits.TrailingZeros32(m)] != 0
			bar.any = bar.any || set
			bar.every = bar.every && set
			bar.sum += b2i(set)
		}
	}
	if op.arrive {
		w.block.complete(uint32(id))
		return next
	}
	w.hold(mask, atBarrier, uint32(id))
	w.block.complete(uint32(id))
	return gone
}

// arriving is added to a barrier's number where a part of a warp, which has gone ahead of the others, waits for them at
// a bar.arrive.
const arriving = 16

// arrive counts threads.
func (b *barrier) arrive(w *warp, mask uint32, count int) {
	if b.arrived == 0 {
		b.every = true
	}
	b.count = count
	b.arrived += bits.OnesCount32(mask)
	b.masks[w.index] |= mask
}

// arriveTogether carries out a bar.arrive that all threads of the warp have come to.
func (w *warp) arriveTogether() {
	for i := range w.n {
		g := w.groups[i]
		if g.wait != atBarrier || g.value < arriving || g.mask != w.live {
			continue
		}
		id := g.value - arriving
		in := &w.block.grid.Kernel.code.ins[g.pc]
		w.block.bars[id].arrive(w, g.mask, int(w.slot(in.src[1])[bits.TrailingZeros32(g.mask)]))
		w.release(atBarrier, g.value)
		w.block.complete(id)
		return
	}
}

// elsewhere reports whether threads of the warp wait at another barrier instruction than the current one, where either
// is for all threads of the warp.
func (w *warp) elsewhere(why wait, aligned bool) bool {
	for i := range w.n {
		g := &w.groups[i]
		if g.wait == why && g.pc != w.groups[w.current].pc && (aligned || w.block.grid.Kernel.code.ins[g.pc].bars(nil)) {
			return true
		}
	}
	return false
}

// complete lets the threads at a barrier go on if all have arrived.
func (b *block) complete(id uint32) {
	bar := &b.bars[id]
	if want := bar.count; bar.arrived == 0 || want == 0 && bar.arrived < b.live || bar.arrived < want {
		return
	}
	b.grid.world.progress()
	b.mem.Barrier(bar.masks)
	ins := b.grid.Kernel.code.ins
	for _, w := range b.warps {
		if bar.masks[w.index] == 0 {
			continue
		}
		for i := range w.n {
			if g := &w.groups[i]; g.wait == atBarrier && g.value == id {
				bar.result(w, &ins[g.pc], g.mask)
			}
		}
		w.release(atBarrier, id)
	}
	bar.clear()
}

// result gives threads the result of bar.red.
func (b *barrier) result(w *warp, in *inst, mask uint32) {
	var v uint64
	switch in.x.(*barrierOp).red {
	case "popc":
		v = uint64(b.sum)
	case "and":
		v = uint64(b2i(b.every))
	case "or":
		v = uint64(b2i(b.any))
	default:
		return
	}
	fill(w.slot(in.dst[0]), mask, v)
}

// fill sets the lanes of mask.
func fill(d *alu.Lanes, mask uint32, v uint64) {
	for m := mask; m != 0; m &= m - 1 {
		d[bits.TrailingZeros32(m)] = v
	}
}
