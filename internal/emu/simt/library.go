package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// execLibrary carries out a function of CUDA's device library.
func execLibrary(w *warp, in *inst, mask uint32) status {
	op := in.x.(*externOp)
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		s := next
		touch := func(addr uint64, size int, each func(a *access, p storage, mask uint32, addr *alu.Lanes) status) {
			var at alu.Lanes
			at[lane] = addr
			if s == next {
				s = w.split(1<<lane, &at, func(p storage, mask uint32, addr *alu.Lanes) status {
					return each(&access{size: size}, p, mask, addr)
				})
			}
		}
		reads := func(addr uint64, size int) uint64 {
			var v alu.Lanes
			touch(addr, size, func(a *access, p storage, mask uint32, addr *alu.Lanes) status {
				return w.load(in, a, p, mask, addr, []*alu.Lanes{&v})
			})
			return v[lane]
		}
		writes := func(addr uint64, size int, x uint64) {
			var v alu.Lanes
			v[lane] = x
			touch(addr, size, func(a *access, p storage, mask uint32, addr *alu.Lanes) status {
				return w.store(in, a, p, mask, addr, []*alu.Lanes{&v})
			})
		}
		args := make([]uint64, len(op.args))
		for i := range args {
			args[i] = w.passed(op, i, lane)
		}
		result := alu.Lanes{}
		result[lane] = op.function.Run(args, reads, writes)
		if s != next {
			return s
		}
		if len(op.results) > 0 {
			at := alu.Lanes{}
			at[lane] = uint64(op.results[0])
			w.own.store(1<<lane, &at, op.size, []*alu.Lanes{&result})
			w.shades.unshadePrivate(lane, op.results[0], op.size)
		}
	}
	return next
}
