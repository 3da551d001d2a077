package simt

import (
	"math/bits"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A syncOp is a .sync instruction of a warp: a shuffle, vote, match, reduction or
// bar.warp.sync. A thread waits until all threads of its member mask that have not
// ended are at an instruction of the same name with the same mask; it need not be the
// same instruction.
//
// Only bar.warp.sync orders the threads' accesses to memory; votes and shuffles do not
// (CUDA C++ Programming Guide, warp vote and warp shuffle functions).
type syncOp struct {
	name   string
	member int      // which source is the member mask
	run    alu.Func // for all threads that take part
	orders bool     // orders memory too

	shuffles bool // gives each thread a value of another

	// together, if set, is what all threads of a warp do at one instruction, which it is part of: see decodeAligned.
	together together
}

func decodeSync(c *compiler, fr *frame, in *ptx.Instr) {
	var d inst
	ops := in.Operands
	dsts := 1
	if in.Op == "bar" || in.Op == "barrier" {
		dsts = 0
	}
	c.dests(fr, in, &d, ops[:dsts]...)
	c.sources(fr, in, &d, ops[dsts:]...)
	op := &syncOp{name: in.Name(), member: len(d.src) - 1, orders: dsts == 0, shuffles: in.Op == "shfl"}
	op.run = syncFunc(in, len(d.src))
	d.x, d.exec = op, execSync
	c.emit(fr, in, d)
}

// syncFunc is the function that an instruction computes; dst may have one element less than the function can fill.
func syncFunc(in *ptx.Instr, srcs int) alu.Func {
	mode := func(names ...string) string {
		for _, n := range names {
			if in.Has(n) {
				return n
			}
		}
		return ""
	}
	if !in.Has("sync") {
		refuse(in, "needs .sync")
	}
	var t ptx.Type
	if len(in.Types) > 0 {
		t = in.Types[len(in.Types)-1]
	}
	want := 2
	var run alu.Func
	switch in.Op {
	case "bar", "barrier":
		want, run = 1, func(uint32, []*alu.Lanes, []*alu.Lanes) {}
	case "shfl":
		want, run = 4, shuffle(mode("up", "down", "bfly", "idx"))
	case "vote":
		run = vote(mode("all", "any", "uni", "ballot"))
	case "match":
		run = match(mode("all", "any"))
	case "redux":
		run = reduce(mode("add", "min", "max", "and", "or", "xor"), t.Signed())
	case "elect":
		want, run = 1, elect
	}
	if run == nil || srcs != want || strings.Contains(in.Name(), ".f32") {
		refuse(in, "not emulated")
	}
	return run
}

// decodeActive decodes activemask, which does not wait.
func decodeActive(c *compiler, fr *frame, in *ptx.Instr) {
	d := c.dest(fr, in, in.Operands[0])
	c.emit(fr, in, inst{dst: []int32{d}, alu: func(mask uint32, dst, _ []*alu.Lanes) { fill(dst[0], mask, uint64(mask)) }})
}

func execSync(w *warp, in *inst, mask uint32) status {
	op := in.x.(*syncOp)
	members := w.slot(in.src[op.member])
	member := uint32(members[bits.TrailingZeros32(mask)])
	same := uint32(0)
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if uint32(members[lane])>>lane&1 == 0 {
			return w.failAt(in, lane, weakmem.BadInstruction, 0, "the thread is not in its member mask")
		}
		if uint32(members[lane]) == member {
			same |= 1 << lane
		}
	}
	if same == mask && member&w.live == mask {
		if w.shades.n != 0 && in.ptx.Op == "shfl" {
			w.shadeShuffled(op, func(int) *inst { return in }, mask, w.operands(&w.src, in.src))
		}
		w.shared(op, mask, []*inst{in}, []uint32{mask})
		op.run(mask, w.operands(&w.dst, in.dst), w.operands(&w.src, in.src))
		if op.orders {
			w.block.mem.SyncWarp(w.index, mask)
		}
		return next
	}
	if other := mask &^ same; other != 0 { // threads with another member mask wait apart
		w.add(group{pc: w.groups[w.current].pc, mask: other, wait: atSync,
			value: uint32(members[bits.TrailingZeros32(other)])})
		w.groups[w.current].mask &^= other
		w.regroup(other)
	}
	w.hold(same, atSync, member)
	w.retrySync()
	return gone
}

// regroup splits the waiting threads of mask by their member masks.
func (w *warp) regroup(mask uint32) {
	for i := 0; i < w.n; i++ {
		g := w.groups[i]
		if g.wait != atSync || g.mask&mask == 0 {
			continue
		}
		in := &w.block.grid.Kernel.code.ins[g.pc]
		members := w.slot(in.src[in.x.(*syncOp).member])
		for m := g.mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			if v := uint32(members[lane]); v != g.value {
				w.groups[i].mask &^= 1 << lane
				w.add(group{pc: g.pc, mask: 1 << lane, wait: atSync, value: v})
			}
		}
	}
}

// retrySync carries out the instructions for which all threads have arrived.
func (w *warp) retrySync() {
	ins := w.block.grid.Kernel.code.ins
	for i := 0; i < w.n; i++ {
		g := &w.groups[i]
		if g.wait != atSync {
			continue
		}
		op := ins[g.pc].x.(*syncOp)
		var here uint32
		var who []int
		for k := range w.n {
			if o := &w.groups[k]; o.wait == atSync && o.value == g.value && ins[o.pc].x.(*syncOp).name == op.name {
				here |= o.mask
				who = append(who, k)
			}
		}
		switch {
		case here != g.value&w.live:
		case op.together == nil:
			w.syncApart(who, here)
		case w.alignedApart(who) != next:
			return
		}
	}
}

// syncApart carries out a syncOp of groups that are at different instructions.
func (w *warp) syncApart(who []int, mask uint32) {
	ins := w.block.grid.Kernel.code.ins
	var d, s [4]alu.Lanes
	dst, src := []*alu.Lanes{&d[0], &d[1]}, []*alu.Lanes{&s[0], &s[1], &s[2], &s[3]}
	for _, k := range who {
		g := &w.groups[k]
		for i, slot := range ins[g.pc].src {
			copyLanes(&s[i], w.slot(slot), g.mask)
		}
	}
	op := ins[w.groups[who[0]].pc].x.(*syncOp)
	if first := &ins[w.groups[who[0]].pc]; w.shades.n != 0 && first.ptx.Op == "shfl" {
		w.shadeShuffled(op, func(lane int) *inst { return &ins[w.groupOf(lane).pc] }, mask, src)
	}
	var at []*inst
	var masks []uint32
	for _, k := range who {
		at, masks = append(at, &ins[w.groups[k].pc]), append(masks, w.groups[k].mask)
	}
	w.shared(op, mask, at, masks)
	op.run(mask, dst, src)
	if op.orders {
		w.block.mem.SyncWarp(w.index, mask)
	}
	for _, k := range who {
		g := &w.groups[k]
		for i, slot := range ins[g.pc].dst {
			copyLanes(w.slot(slot), &d[i], g.mask)
		}
		g.wait, g.value = running, 0
		g.pc++
	}
	w.block.wake(w)
}

// groupOf is the group that a thread is in.
func (w *warp) groupOf(lane int) *group {
	for i := range w.n {
		if w.groups[i].mask>>lane&1 != 0 {
			return &w.groups[i]
		}
	}
	return nil
}

// copyLanes copies the lanes of mask.
func copyLanes(d, s *alu.Lanes, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		d[i] = s[i]
	}
}
