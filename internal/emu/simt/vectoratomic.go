package simt

import (
	"fmt"
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// execVectorAtomic is atom and red of a vector, of which each element is an atomic operation of its own. Their order is
// the seed's.
func execVectorAtomic(w *warp, in *inst, mask uint32) status {
	a := in.x.(*atomic)
	n := in.ptx.Vec
	addr := *w.address(in, &a.access) // a destination may be the register of the address
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		switch at := addr[lane]; {
		case at >= sharedWindow:
			return w.failAt(in, lane, weakmem.BadInstruction, at, "atomic operations on vectors are on global memory")
		case at%uint64(n*a.size) != 0:
			return w.failAt(in, lane, weakmem.Misaligned, at, fmt.Sprintf("the address of a vector of %d bytes has to be a "+
				"multiple of its size", n*a.size))
		}
	}
	values := &w.block.grid.world.values // likewise of a value
	for i := range n {
		values[i] = *w.slot(in.src[1+i])
	}
	first := w.block.grid.world.random.below(n)
	for i := range n {
		i = (first + i) % n
		element := addr
		for lane := range element {
			element[lane] += uint64(i * a.size)
		}
		var old *alu.Lanes
		if len(in.dst) > 0 {
			old = w.slot(in.dst[i])
		}
		if s := w.atomic(in, a, memory, mask, &element, &values[i], &values[i], old); s != next {
			return s
		}
	}
	return next
}

// extremum is min or max of floats, of both elements of a packed type.
func extremum(in *ptx.Instr, op string) func(old, v uint64) uint64 {
	t := in.Types[0]
	run, err := alu.Lookup(&ptx.Instr{Op: op, Mods: []string{t.String()}, Types: []ptx.Type{t}})
	if err != nil {
		refuse(in, "%v", err)
	}
	return func(old, v uint64) uint64 {
		var a, b, d alu.Lanes
		a[0], b[0] = old, v
		run.Run(1, []*alu.Lanes{&d}, []*alu.Lanes{&a, &b})
		return d[0]
	}
}
