package simt

import (
	"fmt"
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An mbarrierOp is an instruction of a barrier in shared memory. The first source is its
// address; then come count, bytes, state or parity. A time limit is left out.
type mbarrierOp struct {
	pointer
	do    change
	plain bool // arrivals release nothing, waits acquire nothing
	state bool // an arrival gives one
	// scope is the cluster where the text has none. PTX's default is the block, but CUTLASS and Triton leave the scope
	// out where they arrive at other blocks' barriers.
	scope      weakmem.Scope
	noComplete bool
	drop       bool
	expects    bool // .expect_tx
	parity     bool
}

func decodeMbarrier(c *compiler, fr *frame, in *ptx.Instr) {
	if in.Mods[0] == "pending_count" {
		decodePendingCount(c, fr, in)
		return
	}
	op := &mbarrierOp{plain: in.Has("relaxed"), noComplete: in.Has("noComplete"), drop: in.Mods[0] == "arrive_drop",
		parity: in.Has("parity")}
	if !in.Has("cta") {
		op.scope = weakmem.Cluster
	}
	d := inst{exec: execMbarrier, x: op}
	ops := in.Operands
	switch in.Mods[0] {
	case "init":
		d.exec = execInit
	case "inval":
		op.do = doInval
	case "arrive", "arrive_drop":
		op.do, op.expects = doArrive, in.Has("expect_tx")
	case "expect_tx":
		op.do = doExpect(1)
	case "complete_tx":
		op.do = doExpect(-1)
	case "test_wait", "try_wait":
		d.exec = execWait
		ops = ops[:min(len(ops), 3)]
	}
	if ops[0].Kind != ptx.AddrOperand {
		c.dests(fr, in, &d, ops[0])
		op.state = ops[0].Kind == ptx.RegOperand
		ops = ops[1:]
	}
	op.pointer = c.pointer(fr, in, &d, ops[0], in.Space)
	c.sources(fr, in, &d, ops[1:]...)
	c.emit(fr, in, d)
}

func decodePendingCount(c *compiler, fr *frame, in *ptx.Instr) {
	d := c.dest(fr, in, in.Operands[0])
	s := c.source(fr, in, in.Operands[1])
	c.emit(fr, in, inst{dst: []int32{d}, src: []int32{s}, alu: func(mask uint32, dst, src []*alu.Lanes) {
		for m := mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			dst[0][i] = src[0][i] & 0xffffffff
		}
	}})
}

// barrierAccess is how operations on barriers access their bytes.
func barrierAccess(in *inst) weakmem.How {
	return weakmem.How{Order: weakmem.Relaxed, Scope: weakmem.Cluster, Shared: true, Line: in.ptx.Line}
}

// execInit is mbarrier.init.
func execInit(w *warp, in *inst, mask uint32) status {
	op := in.x.(*mbarrierOp)
	b := w.block
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		at, s := w.inOwn(in, &op.pointer, in.src[0], lane)
		if s != next {
			return s
		}
		n := w.slot(in.src[1])[lane] & 0xffffffff
		if n < 1 || n > mostArrivals {
			return w.failAt(in, lane, weakmem.BadInstruction, at, "an mbarrier is for 1 to 1048575 arrivals")
		}
		if old := b.mbarriers[at]; old != nil && !old.gone {
			return w.failAt(in, lane, weakmem.BadInstruction, at,
				"the memory holds a barrier already, which mbarrier.inval has to end: "+old.String())
		}
		if s := w.mark(in, lane, at, mbarrierMark); s != next {
			return s
		}
		if b.mbarriers == nil {
			b.mbarriers = map[uint64]*mbarrier{}
		}
		b.mbarriers[at] = &mbarrier{block: b, at: at, expected: int(n), pending: int(n), by: thread{w.index, lane}}
	}
	return next
}

// mark stores to the bytes of a barrier.
func (w *warp) mark(in *inst, lane int, at, v uint64) status {
	var addr, data alu.Lanes
	addr[lane], data[lane] = at, v
	if f := w.block.mem.Store(w.index, 1<<lane, &addr, 8, []*alu.Lanes{&data},
		weakmem.How{Shared: true, Line: in.ptx.Line}); f != nil {
		return w.stopped(in, f)
	}
	return next
}

// mbarrier finds the barrier at an offset in a block's shared memory for lanes. Without one it stops the grid.
func (w *warp) mbarrier(in *inst, mask uint32, b *block, at uint64) (*mbarrier, status) {
	var addr, v alu.Lanes
	fill(&addr, mask, at)
	lane := bits.TrailingZeros32(mask)
	how := barrierAccess(in)
	if b != w.block {
		how.Of = b.mem
	}
	if f := w.block.mem.Load(w.index, mask, &addr, 8, []*alu.Lanes{&v}, how); f != nil {
		return nil, w.stopped(in, f)
	}
	m, s := w.findMbarrier(in, lane, b, at)
	if s == next && v[lane] != mbarrierMark {
		return nil, w.failAt(in, lane, weakmem.BadInstruction, at, "something was stored over the "+m.String())
	}
	return m, s
}

// findMbarrier is mbarrier for a copy to another block, which itself accesses the barrier, later.
func (w *warp) findMbarrier(in *inst, lane int, b *block, at uint64) (*mbarrier, status) {
	switch m := b.mbarriers[at]; {
	case b.live == 0:
		return nil, w.failAt(in, lane, weakmem.OutOfBounds, at, fmt.Sprintf(
			"block %s, whose shared memory it is, has ended", triple(b.index)))
	case m == nil || m.gone:
		return nil, w.failAt(in, lane, weakmem.BadInstruction, at, "no mbarrier was initialised there, or it was invalidated")
	default:
		return m, next
	}
}

// mbarrierOf finds the barrier that a copy to a block is to tell.
func (w *warp) mbarrierOf(in *inst, lane int, to *block, at uint64) (*mbarrier, status) {
	if to == w.block {
		return w.mbarrier(in, 1<<lane, to, at)
	}
	return w.findMbarrier(in, lane, to, at)
}

// execMbarrier is what changes a barrier, lane by lane.
func execMbarrier(w *warp, in *inst, mask uint32) status {
	op := in.x.(*mbarrierOp)
	var of [32]*block
	var addr alu.Lanes
	for l := mask; l != 0; l &= l - 1 {
		lane := bits.TrailingZeros32(l)
		var s status
		if of[lane], addr[lane], s = w.inShared(in, &op.pointer, in.src[0], lane); s != next {
			return s
		}
	}
	for rest := mask; rest != 0; {
		first := bits.TrailingZeros32(rest)
		same := lanesAt(rest, &addr)
		for l := same; l != 0; l &= l - 1 {
			if lane := bits.TrailingZeros32(l); of[lane] != of[first] {
				same &^= 1 << lane
			}
		}
		rest &^= same
		m, s := w.mbarrier(in, same, of[first], addr[first])
		if s != next {
			return s
		}
		if of[first] != w.block && op.state {
			return w.failAt(in, first, weakmem.BadInstruction, m.at, "an arrival at another block's mbarrier gives no state")
		}
		if wrong, lane := op.do(w, in, m, same); wrong != "" {
			return w.failAt(in, lane, weakmem.BadInstruction, m.at, wrong)
		}
	}
	w.block.grid.world.progress()
	return w.alive()
}

// execWait is test_wait and try_wait. Neither waits: a thread that finds the phase going on
// polls.
func execWait(w *warp, in *inst, mask uint32) status {
	op := in.x.(*mbarrierOp)
	want := *w.slot(in.src[1])
	passed := w.slot(in.dst[0])
	var waits *mbarrier
	addr, s := w.allInOwn(in, &op.pointer, mask)
	if s != next {
		return s
	}
	for rest := mask; rest != 0; {
		same := lanesAt(rest, &addr)
		m, s := w.mbarrier(in, same, w.block, addr[bits.TrailingZeros32(same)])
		if s != next {
			return s
		}
		ended := uint32(0)
		for l := same; l != 0; l &= l - 1 {
			lane := bits.TrailingZeros32(l)
			yes, wrong := m.passedParity(want[lane]), ""
			if !op.parity {
				yes, wrong = m.passed(want[lane])
			}
			if wrong != "" {
				return w.failAt(in, lane, weakmem.BadInstruction, m.at, wrong)
			}
			passed[lane] = uint64(b2i(yes))
			ended |= uint32(b2i(yes)) << lane
		}
		if ended != same {
			waits = m
		}
		if !op.plain {
			w.block.mem.Know(w.index, ended, m.done)
			if op.scope >= weakmem.Cluster {
				w.block.mem.Know(w.index, ended, m.farDone)
			}
		}
		rest &^= same
	}
	found := w.far.count
	if waits != nil {
		found = 0
	}
	w.giveWay(in, addr[bits.TrailingZeros32(mask)], found)
	if waits != nil && w.block.grid.world.watch {
		w.polled = poll{in: in, lane: bits.TrailingZeros32(mask), addr: waits.at, shared: true, bar: waits}
	}
	return next
}

// lanesAt is the lanes of a mask whose address is that of the first.
func lanesAt(mask uint32, addr *alu.Lanes) (same uint32) {
	at := addr[bits.TrailingZeros32(mask)]
	for m := mask; m != 0; m &= m - 1 {
		if lane := bits.TrailingZeros32(m); addr[lane] == at {
			same |= 1 << lane
		}
	}
	return same
}

// execInitFence is fence.mbarrier_init: bulk copies see the barriers that the threads have initialised, and the
// cluster does behind its barrier, even if arrivals are relaxed.
func execInitFence(w *warp, _ *inst, mask uint32) status {
	for _, m := range w.block.mbarriers {
		if m.by.warp == w.index && mask>>m.by.lane&1 != 0 {
			m.fenced = true
			if c := w.block.cluster; c != nil {
				c.fenced = append(c.fenced, m)
			}
		}
	}
	return next
}
