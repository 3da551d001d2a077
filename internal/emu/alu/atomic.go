package alu

import "github.com/ringo-go/ringo/internal/emu/ptx"

// AtomicAdd is the sum that atom.add and red.add of a float store for old and v; ok is
// false for other types. It is not add: in global memory float32 is flushed to zero,
// and other NaNs are chosen.
func AtomicAdd(t ptx.Type, shared bool) (f func(old, v uint64) uint64, ok bool) {
	switch {
	case t == ptx.F32 && !shared:
		return func(old, v uint64) uint64 {
			x := addOdd(f32.value(f32.flush(old)), f32.value(f32.flush(v)), nearest)
			if x != x {
				return nanF32
			}
			return f32.roundFlush(x, nearest)
		}, true
	case t == ptx.F64:
		return func(old, v uint64) uint64 {
			x := toF64(old) + toF64(v)
			if x != x {
				return atomicNaN64(old, v, shared)
			}
			return fromF64(x, old, v)
		}, true
	}
	quick := quickBinary["add"][elementOf(t)]
	return each2(t, quick), quick != nil
}
