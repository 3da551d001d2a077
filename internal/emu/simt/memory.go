package simt

import (
	"encoding/binary"
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An access is how an instruction accesses memory.
type access struct {
	storage storage
	own     bool // shared memory has to be the block's
	size    int
	offset  uint64 // to add to the address
	narrow  bool   // the address is a register of 32 bits
	how     weakmem.How
	extend  []int // loads of signed types: the width in bits of each register to extend to
}

// newAccess decodes where and how an instruction accesses memory, and the slot of the address.
func (c *compiler) newAccess(fr *frame, in *ptx.Instr, o ptx.Operand) (*access, int32) {
	a := &access{size: in.Types[0].Size(), how: weakmem.How{Line: in.Line}}
	if a.size > 8 {
		refuse(in, "elements of %d bytes are not emulated", a.size)
	}
	switch in.Space {
	case ptx.Generic:
		a.storage = anywhere
	case ptx.Global, ptx.Const:
		a.storage = memory
	case ptx.Shared:
		a.storage, a.how.Shared, a.own = shared, true, !in.Has(clusterSpace)
	case ptx.Local:
		a.storage = local
	case ptx.Param:
		a.storage = arguments
		if fr.passing(o.Name) != nil || !fr.f.Entry {
			a.storage = local
		}
	default:
		refuse(in, "state space %v is not emulated", in.Space)
	}
	if a.storage == memory {
		a.how.NonCoherent = in.Has("nc") || in.Op == "ldu" || in.Space == ptx.Const
	}
	a.order(in)
	switch {
	case o.Name != "" && in.Space == ptx.Local && fr.activates:
		k, _ := c.variable(fr, in, o.Name, o.Imm)
		a.offset = k.value
		return a, fr.sp
	case o.Name != "":
		return a, c.address(fr, in, o.Name, o.Imm)
	case o.Reg >= 0:
		a.offset, a.narrow = o.Imm, c.width(fr, ptx.Operand{Kind: ptx.RegOperand, Reg: o.Reg}) == 32
		return a, fr.regs + int32(o.Reg)
	}
	return a, c.constant(constant{value: o.Imm})
}

// order finds order and scope among the modifiers.
func (a *access) order(in *ptx.Instr) {
	a.how.Scope = weakmem.GPU
	for _, m := range in.Mods {
		switch m {
		case "relaxed":
			a.how.Order = weakmem.Relaxed
		case "acquire":
			a.how.Order = weakmem.Acquire
		case "release":
			a.how.Order = weakmem.Release
		case "acq_rel":
			a.how.Order = weakmem.AcqRel
		case "sc":
			a.how.Order = weakmem.SeqCst
		case "volatile", "mmio":
			a.how.Order, a.how.Scope = weakmem.Relaxed, weakmem.System
		case "cta":
			a.how.Scope = weakmem.CTA
		case "cluster":
			a.how.Scope = weakmem.Cluster
		case "gpu", "gl":
			a.how.Scope = weakmem.GPU
		case "sys":
			a.how.Scope = weakmem.System
		}
	}
}

func decodeLoad(c *compiler, fr *frame, in *ptx.Instr) {
	a, base := c.newAccess(fr, in, in.Operands[1])
	d := inst{exec: execLoad, src: []int32{base}, x: a}
	extend := false
	c.dests(fr, in, &d, in.Operands[0])
	for _, o := range flatten(in.Operands[:1]) {
		to := c.width(fr, o)
		a.extend = append(a.extend, to)
		extend = extend || in.Types[0].Signed() && to > 8*a.size
	}
	if !extend {
		a.extend = nil
	}
	if a.storage == arguments {
		d.exec = execArgument
	}
	c.emit(fr, in, d)
}

func decodeStore(c *compiler, fr *frame, in *ptx.Instr) {
	if in.Has("async") {
		decodeAsyncStore(c, fr, in)
		return
	}
	a, base := c.newAccess(fr, in, in.Operands[0])
	if a.storage == arguments {
		refuse(in, "kernel parameters cannot be written")
	}
	d := inst{exec: execStore, src: []int32{base}, x: a}
	c.sources(fr, in, &d, in.Operands[1])
	c.emit(fr, in, d)
}

// address is the addresses of an access: the register itself, or scratch.
func (w *warp) address(in *inst, a *access) *alu.Lanes {
	base := w.slot(in.src[0])
	if a.offset == 0 {
		return base
	}
	cut := ^uint64(0)
	if a.narrow {
		cut = 1<<32 - 1
	}
	for i := range w.addr {
		w.addr[i] = (base[i] + a.offset) & cut
	}
	return &w.addr
}

func execLoad(w *warp, in *inst, mask uint32) status {
	a := in.x.(*access)
	addr, dst := w.address(in, a), w.operands(&w.dst, in.dst)
	mask = w.stray(in, a, mask, addr)
	if a.how.Order == weakmem.Relaxed && w.later(in, a, mask, addr) {
		return next
	}
	var s status
	if a.storage != anywhere {
		s = w.load(in, a, a.storage, mask, addr, dst)
	} else {
		s = w.split(mask, addr, func(p storage, mask uint32, addr *alu.Lanes) status {
			return w.load(in, a, p, mask, addr, dst)
		})
	}
	if s == next {
		a.finish(mask, dst)
	}
	return s
}

// finish sign-extends loaded values.
func (a *access) finish(mask uint32, dst []*alu.Lanes) {
	for i, to := range a.extend {
		alu.Extend(mask, dst[i], 8*a.size, to)
	}
}

func (w *warp) load(in *inst, a *access, p storage, mask uint32, addr *alu.Lanes, dst []*alu.Lanes) status {
	switch p {
	case local:
		if len(w.shades.local) > 0 {
			w.addr, addr = *addr, &w.addr // dst may be the register of the address
		}
		if lane, kind, why := w.own.load(mask, addr, a.size, dst); why != "" {
			return w.failAt(in, lane, kind, addr[lane], why)
		}
		w.shadePrivate(in, a, mask, addr, false)
		return next
	case arguments:
		return w.argument(in, a, mask, addr, dst)
	case shared:
		if w.block.cluster != nil {
			return w.byBlock(in, mask, addr, a.own, func(of *weakmem.Block, mask uint32, addr *alu.Lanes) status {
				return w.loadFrom(in, a, of, true, mask, addr, dst)
			})
		}
	}
	return w.loadFrom(in, a, nil, p == shared, mask, addr, dst)
}

// loadFrom loads from global memory, or the shared memory of a block.
func (w *warp) loadFrom(in *inst, a *access, of *weakmem.Block, shared bool, mask uint32, addr *alu.Lanes,
	dst []*alu.Lanes) status {
	how := a.how
	how.Shared, how.Of = shared, of
	first := bits.TrailingZeros32(mask)
	at := addr[first]         // dst may be the register of the address
	follows := in.x == any(a) // else a matrix or package library uses it at once
	if follows {
		how.Shade = &w.shades.loaded
	}
	if f := w.block.mem.Load(w.index, mask, addr, a.size, dst, how); f != nil {
		return w.stopped(in, f)
	}
	if follows && how.Shade.Mask != 0 {
		w.shadeLoaded(in, a, mask)
	}
	if how.Order != weakmem.Weak {
		w.giveWay(in, at, dst[0][first])
		if w.block.grid.world.watch {
			w.polled = poll{in: in, lane: first, addr: at, shared: how.Shared, value: dst[0][first]}
		}
	}
	return next
}

func execStore(w *warp, in *inst, mask uint32) status {
	a := in.x.(*access)
	addr, src := w.address(in, a), w.operands(&w.src, in.src)[1:]
	mask = w.stray(in, a, mask, addr)
	if a.storage != anywhere {
		return w.store(in, a, a.storage, mask, addr, src)
	}
	return w.split(mask, addr, func(p storage, mask uint32, addr *alu.Lanes) status {
		return w.store(in, a, p, mask, addr, src)
	})
}

func (w *warp) store(in *inst, a *access, p storage, mask uint32, addr *alu.Lanes, src []*alu.Lanes) status {
	switch p {
	case local:
		if lane, kind, why := w.own.store(mask, addr, a.size, src); why != "" {
			return w.failAt(in, lane, kind, addr[lane], why)
		}
		w.shadePrivate(in, a, mask, addr, true)
		return next
	case arguments:
		return w.fail(in, mask, weakmem.BadInstruction, "kernel parameters cannot be written")
	case shared:
		if w.block.cluster != nil {
			return w.byBlock(in, mask, addr, a.own, func(of *weakmem.Block, mask uint32, addr *alu.Lanes) status {
				return w.storeTo(in, a, of, true, mask, addr, src)
			})
		}
	}
	return w.storeTo(in, a, nil, p == shared, mask, addr, src)
}

// storeTo stores to global memory, or the shared memory of a block.
func (w *warp) storeTo(in *inst, a *access, of *weakmem.Block, shared bool, mask uint32, addr *alu.Lanes,
	src []*alu.Lanes) status {
	how := a.how
	how.Shared, how.Of = shared, of
	if w.shades.n != 0 && in.x == any(a) {
		ok := false
		if how.Shade, ok = w.shadeStored(in, mask, !shared); !ok {
			return gone
		}
	}
	if f := w.block.mem.Store(w.index, mask, addr, a.size, src, how); f != nil {
		return w.stopped(in, f)
	}
	if len(w.late) > 0 {
		w.left -= pollCost // others may see the store before the loads that it has passed
	}
	return next
}

func execArgument(w *warp, in *inst, mask uint32) status {
	a := in.x.(*access)
	dst := w.operands(&w.dst, in.dst)
	s := w.argument(in, a, mask, w.address(in, a), dst)
	if s == next {
		a.finish(mask, dst)
	}
	return s
}

// argument reads kernel parameters.
func (w *warp) argument(in *inst, a *access, mask uint32, addr *alu.Lanes, dst []*alu.Lanes) status {
	var b [8]byte
	args := w.block.grid.Args
	n := uint64(a.size * len(dst))
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		at := addr[lane]
		if at >= uint64(len(args)) || at+n > uint64(len(args)) {
			return w.failAt(in, lane, weakmem.OutOfBounds, at, "outside of the kernel's parameters")
		}
		if at%n != 0 {
			return w.failAt(in, lane, weakmem.Misaligned, at, "in the kernel's parameters")
		}
		for _, d := range dst {
			copy(b[:], args[at:][:a.size])
			d[lane] = binary.LittleEndian.Uint64(b[:])
			at += uint64(a.size)
		}
	}
	return next
}

func decodeFence(c *compiler, fr *frame, in *ptx.Instr) {
	switch {
	case in.Has("mbarrier_init"):
		c.emit(fr, in, inst{exec: execInitFence})
		return
	case in.Has("alias"):
		c.emit(fr, in, inst{exec: execAlias})
		return
	case in.Has("proxy"):
		op := proxyOp{shared: !in.Has("global"), global: in.Mods[len(in.Mods)-1] == "async" || in.Has("global")}
		c.emit(fr, in, inst{exec: execProxy, x: op})
		return
	}
	a := &access{how: weakmem.How{Line: in.Line}}
	a.order(in)
	if in.Op == "membar" { // the same as fence.sc since sm_70
		a.how.Order = weakmem.SeqCst
	} else if a.how.Order != weakmem.SeqCst { // fence.acquire and fence.release order both ways here
		a.how.Order = weakmem.AcqRel
	}
	c.emit(fr, in, inst{exec: execFence, x: a})
}

func execFence(w *warp, in *inst, mask uint32) status {
	w.block.mem.Fence(w.index, mask, in.x.(*access).how)
	return next
}

// A proxyOp is fence.proxy.async, for the memory that it names.
type proxyOp struct{ shared, global bool }

func execProxy(w *warp, in *inst, mask uint32) status {
	op := in.x.(proxyOp)
	w.block.mem.FenceProxy(w.index, mask, op.shared, op.global)
	return next
}

func execAlias(w *warp, _ *inst, mask uint32) status {
	w.block.mem.FenceAlias(w.index, mask)
	return next
}
