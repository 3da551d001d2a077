package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// An atomic is what atom and red do to memory.
type atomic struct {
	access
	f update
	// near is f in shared memory where that differs.
	near update
}

// An update is the new value for an old one.
type update func(old, b, c uint64) uint64

// integers are the operations on them, without sign.
var integers = map[string]func(old, b, c uint64) uint64{
	"and":  func(old, b, _ uint64) uint64 { return old & b },
	"or":   func(old, b, _ uint64) uint64 { return old | b },
	"xor":  func(old, b, _ uint64) uint64 { return old ^ b },
	"exch": func(_, b, _ uint64) uint64 { return b },
	"add":  func(old, b, _ uint64) uint64 { return old + b },
	"inc": func(old, b, _ uint64) uint64 {
		if old >= b {
			return 0
		}
		return old + 1
	},
	"dec": func(old, b, _ uint64) uint64 {
		if old == 0 || old > b {
			return b
		}
		return old - 1
	},
	"cas": func(old, b, c uint64) uint64 {
		if old == b {
			return c
		}
		return old
	},
	"min": func(old, b, _ uint64) uint64 { return min(old, b) },
	"max": func(old, b, _ uint64) uint64 { return max(old, b) },
}

// newAtomic finds what an instruction does.
func newAtomic(in *ptx.Instr, a access) *atomic {
	t := in.Types[0]
	width := 8 * a.size
	mask := ^uint64(0) >> (64 - width)
	var op string
	for _, m := range in.Mods {
		if integers[m] != nil {
			op = m
		}
	}
	whole := integers[op]
	switch {
	case whole == nil || a.size < 2:
	case t.Float() && op == "add":
		far, ok := alu.AtomicAdd(t, false)
		if !ok {
			break
		}
		near, _ := alu.AtomicAdd(t, true)
		return &atomic{
			access: a,
			f:      func(old, b, _ uint64) uint64 { return far(old, b) },
			near:   func(old, b, _ uint64) uint64 { return near(old, b) },
		}
	case t.Float() && (op == "min" || op == "max"):
		f := extremum(in, op)
		return &atomic{access: a, f: func(old, b, _ uint64) uint64 { return f(old, b) }}
	case t.Signed() && (op == "min" || op == "max"):
		flip := uint64(1) << (width - 1)
		return &atomic{access: a, f: func(old, b, _ uint64) uint64 {
			return whole(old^flip, b&mask^flip, 0) ^ flip
		}}
	default:
		return &atomic{access: a, f: func(old, b, c uint64) uint64 {
			return whole(old, b&mask, c&mask) & mask
		}}
	}
	refuse(in, "this atomic operation is not emulated")
	return nil
}

func decodeAtomic(c *compiler, fr *frame, in *ptx.Instr) {
	if in.Has("async") {
		decodeAsyncStore(c, fr, in)
		return
	}
	ops := in.Operands
	d := inst{exec: execAtomic}
	if in.Op == "atom" {
		if ops[0].Kind != ptx.SinkOperand {
			c.dests(fr, in, &d, ops[0])
		}
		ops = ops[1:]
	}
	a, base := c.newAccess(fr, in, ops[0])
	if a.how.Order == weakmem.Weak {
		a.how.Order = weakmem.Relaxed
	}
	if a.storage == local || a.storage == arguments {
		refuse(in, "atomic operations are on global and shared memory")
	}
	d.src = []int32{base}
	c.sources(fr, in, &d, ops[1:]...)
	d.x = newAtomic(in, *a)
	if in.Vec > 1 {
		d.exec = execVectorAtomic
	}
	c.emit(fr, in, d)
}

// combine is the function that weakmem.Block.Atomic calls, made once.
type combine struct {
	f    update
	b, c *alu.Lanes
	call func(lane int, old uint64) uint64
}

func (c *combine) init() {
	c.call = func(lane int, old uint64) uint64 { return c.f(old, c.b[lane], c.c[lane]) }
}

// kept is call for registers as they are now.
func (c *combine) kept() func(lane int, old uint64) uint64 {
	f, x, y := c.f, *c.b, *c.c
	return func(lane int, old uint64) uint64 { return f(old, x[lane], y[lane]) }
}

func execAtomic(w *warp, in *inst, mask uint32) status {
	a := in.x.(*atomic)
	addr := w.address(in, &a.access)
	b, c := w.slot(in.src[1]), w.slot(in.src[len(in.src)-1])
	var old *alu.Lanes
	if len(in.dst) > 0 {
		old = w.slot(in.dst[0])
	}
	if a.storage != anywhere {
		return w.atomic(in, a, a.storage, mask, addr, b, c, old)
	}
	return w.split(mask, addr, func(p storage, mask uint32, addr *alu.Lanes) status {
		return w.atomic(in, a, p, mask, addr, b, c, old)
	})
}

// atomic is one atomic operation of each thread, with b and c. old, if not nil, gets what was there.
func (w *warp) atomic(in *inst, a *atomic, p storage, mask uint32, addr, b, c, old *alu.Lanes) status {
	if p == shared && w.block.cluster != nil {
		return w.byBlock(in, mask, addr, a.own, func(of *weakmem.Block, mask uint32, addr *alu.Lanes) status {
			return w.atomicOn(in, a, p, of, mask, addr, b, c, old)
		})
	}
	return w.atomicOn(in, a, p, nil, mask, addr, b, c, old)
}

// atomicOn is atomic, in shared memory that of a block of the cluster.
func (w *warp) atomicOn(in *inst, a *atomic, p storage, of *weakmem.Block, mask uint32, addr, b, c,
	old *alu.Lanes) status {
	world := w.block.grid.world
	x := &world.combine
	x.f, x.b, x.c = a.f, b, c
	how := a.how
	switch p {
	case shared:
		how.Shared, how.Of = true, of
		if a.near != nil {
			x.f = a.near
		}
	case local, arguments:
		return w.fail(in, mask, weakmem.BadInstruction, "atomic operations are on global and shared memory")
	}
	f := x.call
	if old == nil && w.block.mem.Late(w.index, how) {
		how.Late = true
		f = x.kept()
	}
	first := bits.TrailingZeros32(mask)
	at := addr[first] // old may be the register of the address
	if f := w.block.mem.Atomic(w.index, mask, addr, a.size, old, f, how); f != nil {
		return w.stopped(in, f)
	}
	if how.Late {
		return next // what nobody has seen is no reason to give way
	}
	found := w.far.count // nobody waits for what gives nothing
	if old != nil {
		found = old[first]
	}
	w.giveWay(in, at, found)
	if world.watch {
		w.polled = poll{in: in, lane: first, addr: at, shared: how.Shared}
		if old != nil {
			w.polled.value = old[first]
		}
	}
	return next
}
