package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// floats are lanes of 32 or 64 bits in which every NaN becomes nan.
func floats(bits int, nan uint64) *lanes {
	l := direct(bits)
	type ops struct{ add, mul, max, min func(...Op) }
	f := map[int]ops{32: {VADDPS, VMULPS, VMAXPS, VMINPS}, 64: {VADDPD, VMULPD, VMAXPD, VMINPD}}[bits]
	l.prepare = func(m *machine) { m.constant("nan", nan, bits) }
	l.canon = func(m *machine, v vec) vec { return m.replace(m.isNaN(v, bits), m.get("nan"), v, bits) }
	l.add = func(m *machine, a, b vec) vec { return to(m, f.add, b, a) }
	l.mul = func(m *machine, a, b vec) vec { return to(m, f.mul, b, a) }

	// The processor's maximum is its second operand if one is a NaN or if both
	// are zeros. So NaNs are replaced by the other operand first, and the two
	// orders of zeros are joined by their sign. Where x is a NaN still, both operands were.
	choose := func(f func(...Op), join func(m *machine, a, b Op) vec) func(m *machine, a, b vec) vec {
		return func(m *machine, a, b vec) vec {
			x, y := m.pick(m.isNaN(a, bits), b, a, bits), m.pick(m.isNaN(b, bits), a, b, bits)
			r := join(m, to(m, f, y, x), to(m, f, x, y))
			return m.pick(m.isNaN(x, bits), m.get("nan"), r, bits)
		}
	}
	l.max = choose(f.max, (*machine).and)
	l.min = choose(f.min, (*machine).or)
	return l
}

// float16s are lanes of float32, half as many as fit into a register of words.
func float16s() *lanes {
	l := floats(32, 0x7fffffff)
	l.unroll = 2
	l.load = func(m *machine, at Mem) []vec {
		lo, hi := m.vec(), m.vec()
		VCVTPH2PS(at, lo)
		VCVTPH2PS(at.Offset(m.width/2), hi)
		return []vec{lo, hi}
	}
	l.store = func(m *machine, v []vec, at Mem) {
		for i := range v {
			VCVTPS2PH(Imm(0), v[i], at.Offset(i*m.width/2))
		}
	}
	l.round = func(m *machine, v vec) vec {
		h, r := m.halfVec(), m.vec()
		VCVTPS2PH(Imm(0), v, h)
		VCVTPH2PS(h, r)
		return r
	}
	return l
}

// bfloat16s are lanes of float32: first the even words of a register, then the
// odd ones. A NaN is kept short of the mantissa bits that would carry into the
// sign when it is rounded.
func bfloat16s() *lanes {
	l := floats(32, 0x7fff0000)
	l.unroll = 2
	nan := l.prepare
	l.prepare = func(m *machine) {
		nan(m)
		m.constant("one", 1, 32)
		m.constant("almostHalf", 0x7fff, 32)
		m.constant("upper", 0xffff0000, 32)
	}
	l.load = func(m *machine, at Mem) []vec {
		v, even := m.load(at), m.vec()
		VPSLLD(Imm(16), v, even)
		return []vec{even, m.and(v, m.get("upper"))}
	}
	rounded := func(m *machine, v vec) vec { // to nearest even, with rubbish in the lower half
		odd := m.vec()
		VPSRLD(Imm(16), v, odd)
		odd = m.and(odd, m.get("one"))
		r := to(m, VPADDD, m.get("almostHalf"), v)
		return to(m, VPADDD, odd, r)
	}
	l.store = func(m *machine, v []vec, at Mem) {
		even, odd := rounded(m, v[0]), rounded(m, v[1])
		VPSRLD(Imm(16), even, even)
		m.store(m.or(even, m.and(odd, m.get("upper"))), at)
	}
	l.round = func(m *machine, v vec) vec {
		return m.and(rounded(m, l.canon(m, v)), m.get("upper"))
	}
	return l
}
