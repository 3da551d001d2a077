package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// selections are lanes of 8 or 16 bits that hold floats, for maximum and
// minimum only: nothing is rounded. Bits that exceed inf, without the sign, are a
// NaN. Read as signed integers, with the lower bits of negative ones inverted,
// numbers are in order, −0 below +0.
func selections(bits int, inf uint64) *lanes {
	l := direct(bits)
	l.prepare = func(m *machine) {
		m.constant("zero", 0, bits)
		m.constant("value", 1<<(bits-1)-1, bits)
		m.constant("inf", inf, bits)
	}
	isNaN := func(m *machine, v vec) mask { return m.above(m.and(v, m.get("value")), m.get("inf"), bits) }
	flip := func(m *machine, v vec) vec {
		negative := m.above(m.get("zero"), v, bits)
		if m.wide() {
			return m.pick(negative, m.xor(v, m.get("value")), v, bits)
		}
		return m.xor(v, m.and(negative, m.get("value")))
	}
	choose := func(f func(...Op)) func(m *machine, a, b vec) vec {
		return func(m *machine, a, b vec) vec {
			x, y := m.pick(isNaN(m, a), b, a, bits), m.pick(isNaN(m, b), a, b, bits)
			r := flip(m, to(m, f, flip(m, y), flip(m, x)))
			return m.pick(isNaN(m, x), m.get("value"), r, bits)
		}
	}
	l.max, l.min = choose(VPMAXSB), choose(VPMINSB)
	if bits == 16 {
		l.max, l.min = choose(VPMAXSW), choose(VPMINSW)
	}
	return l
}
