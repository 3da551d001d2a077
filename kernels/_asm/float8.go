package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// float8s are lanes of float32, a quarter as many as there are bytes in a
// register. Conversions go through float16: an e5m2 is the upper byte of a float16; an
// e4m3, shifted by one bit, is a float16 whose value is too small by 2⁸.
func float8s(e4m3 bool) *lanes {
	l := floats(32, 0x7fffffff)
	l.unroll, l.crowded = 1, true
	nan := l.prepare
	l.prepare = func(m *machine) {
		nan(m)
		m.constant("sign", 1<<31, 32)
		m.constant("exponent", 0x7f800000, 32)
		if e4m3 {
			m.constant("most", 0x43e00000, 32)  // 448
			m.constant("least", 0x3c800000, 32) // 2⁻⁶, the least normal number
			m.constant("unit", 20<<23, 32)
			m.constant("2^8", 0x43800000, 32)
			m.constant("2^-8", 0x3b800000, 32)
			m.constant("value", 0xbfff, 16)
			m.constant("belowNaN", 0xfdff, 16)
			m.constant("sign16", 0x8000, 16)
			m.constant("value8", 0x7f00, 16)
		} else {
			m.constant("most", 0x47600000, 32)  // 57344
			m.constant("least", 0x38800000, 32) // 2⁻¹⁴
			m.constant("unit", 21<<23, 32)
		}
	}
	l.load = func(m *machine, at Mem) []vec {
		all := make([]vec, 4)
		for i := range all {
			h := m.halfVec()
			VPMOVZXBW(at.Offset(i*m.width/4), h)
			VPSLLW(Imm(8), h, h)
			if e4m3 {
				// A NaN, all ones but for the sign, gets float16's exponent.
				nan := m.halfVec()
				VPADDW(h, h, nan)
				VPSUBUSW(m.half(m.get("belowNaN")), nan, nan)
				VPSLLW(Imm(14), nan, nan)
				VPSRAW(Imm(1), h, h)
				m.halfAnd(m.half(m.get("value")), h, h)
				m.halfOr(nan, h, h)
			}
			all[i] = m.vec()
			VCVTPH2PS(h, all[i])
			if e4m3 {
				VMULPS(m.get("2^8"), all[i], all[i])
			}
		}
		return all
	}
	// exact rounds to the numbers of the type. Adding a power of two that is just
	// large enough shifts the surplus mantissa bits out; subtracting it undoes the rest.
	exact := func(m *machine, v vec) vec {
		sign := m.and(v, m.get("sign"))
		size := m.xor(v, sign)
		size = to(m, VMINPS, size, m.get("most")) // a NaN stays a NaN
		power := to(m, VMAXPS, m.get("least"), size)
		power = m.and(power, m.get("exponent"))
		VPADDD(m.get("unit"), power, power)
		VADDPS(power, size, size)
		VSUBPS(power, size, size)
		return m.or(size, sign)
	}
	l.store = func(m *machine, v []vec, at Mem) {
		for i := range v {
			r, h := exact(m, v[i]), m.halfVec()
			if e4m3 {
				VMULPS(m.get("2^-8"), r, r)
			}
			VCVTPS2PH(Imm(0), r, h)
			if e4m3 {
				sign := m.halfVec()
				m.halfAnd(m.half(m.get("sign16")), h, sign)
				VPSLLW(Imm(1), h, h)
				m.halfAnd(m.half(m.get("value8")), h, h)
				m.halfOr(sign, h, h)
			}
			VPSRLW(Imm(8), h, h)
			if m.wide() {
				VPMOVWB(h, at.Offset(i*m.width/4))
			} else {
				VPACKUSWB(h, h, h)
				VMOVQ(h, at.Offset(i*m.width/4))
			}
		}
	}
	l.round = exact
	return l
}
