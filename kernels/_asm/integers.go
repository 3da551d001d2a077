package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// integers are lanes of 8, 32 or 64 bits.
func integers(bits int, signed bool) *lanes {
	l := direct(bits)
	l.add = func(m *machine, a, b vec) vec {
		return to(m, map[int]func(...Op){8: VPADDB, 32: VPADDD, 64: VPADDQ}[bits], b, a)
	}
	l.mul = func(m *machine, a, b vec) vec { return multiply(m, a, b, bits) }
	if bits == 8 {
		l.prepare = func(m *machine) { m.constant("evenBytes", 0x00ff, 16); m.constant("oddBytes", 0xff00, 16) }
	}
	type pair struct{ max, min func(...Op) }
	p := map[bool]map[int]pair{
		true:  {8: {VPMAXSB, VPMINSB}, 32: {VPMAXSD, VPMINSD}, 64: {VPMAXSQ, VPMINSQ}},
		false: {8: {VPMAXUB, VPMINUB}, 32: {VPMAXUD, VPMINUD}, 64: {VPMAXUQ, VPMINUQ}},
	}[signed][bits]
	l.max = func(m *machine, a, b vec) vec {
		if bits == 64 && !m.wide() {
			return m.pick(greater64(m, a, b, signed), a, b, 64)
		}
		return to(m, p.max, b, a)
	}
	l.min = func(m *machine, a, b vec) vec {
		if bits == 64 && !m.wide() {
			return m.pick(greater64(m, a, b, signed), b, a, 64)
		}
		return to(m, p.min, b, a)
	}
	if bits == 64 && !signed {
		l.prepare = func(m *machine) { m.constant("sign", 1<<63, 64) }
	}
	return l
}

// greater64 is the mask of quadwords of a that are greater than those of b. AVX2 compares signed ones only.
func greater64(m *machine, a, b vec, signed bool) mask {
	if !signed {
		a, b = m.xor(a, m.get("sign")), m.xor(b, m.get("sign"))
	}
	return m.above(a, b, 64)
}

// multiply is the lower half of the product.
func multiply(m *machine, a, b vec, bits int) vec {
	switch {
	case bits == 32:
		return to(m, VPMULLD, b, a)
	case bits == 64 && m.wide():
		return to(m, VPMULLQ, b, a)
	case bits == 64: // low·low + (high·low + low·high)·2³²
		x, y := m.vec(), m.vec()
		VPSRLQ(Imm(32), a, x)
		VPMULUDQ(b, x, x)
		VPSRLQ(Imm(32), b, y)
		VPMULUDQ(a, y, y)
		VPADDQ(x, y, y)
		VPSLLQ(Imm(32), y, y)
		VPMULUDQ(a, b, x)
		VPADDQ(x, y, y)
		return y
	}
	// There is no product of bytes, only of words: even bytes by themselves,
	// odd ones as (256·a)·b.
	even := to(m, VPMULLW, b, a)
	even = m.and(even, m.get("evenBytes"))
	odd := m.and(a, m.get("oddBytes"))
	shifted := m.vec()
	VPSRLW(Imm(8), b, shifted)
	odd = to(m, VPMULLW, shifted, odd)
	return m.or(even, odd)
}
