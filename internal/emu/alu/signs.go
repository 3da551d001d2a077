package alu

import "github.com/ringo-go/ringo/internal/emu/ptx"

// makeFloatSign makes abs and neg.
func makeFloatSign(in *ptx.Instr) (Op, bool) {
	t := last(in)
	f := formatOf(t)
	if f == nil || f.width < 16 || f == &tf32 {
		return Op{}, false
	}
	ftz, isAbs := in.Has("ftz"), in.Op == "abs"
	one := func(a uint64) uint64 {
		if f.isNaN(a) {
			return signNaN(f, a)
		}
		if ftz {
			a = f.flush(a)
		}
		if isAbs {
			return a &^ f.sign()
		}
		return a ^ f.sign()
	}
	return unary(t, each1(t, one)), true
}

// makeFloatMinMax makes min and max, for which -0 is below +0.
func makeFloatMinMax(in *ptx.Instr) (Op, bool) {
	t := last(in)
	f := formatOf(t)
	if f == nil || f.width < 16 || f == &tf32 {
		return Op{}, false
	}
	ftz, nan, xorsign, isMax := in.Has("ftz"), in.Has("NaN"), in.Has("xorsign"), in.Op == "max"
	one := func(a, b uint64) uint64 {
		if ftz {
			a, b = f.flush(a), f.flush(b)
		}
		var sign uint64
		if xorsign { // of absolute values, with the sign of the product
			sign = (a ^ b) & f.sign()
			a, b = a&^f.sign(), b&^f.sign()
		}
		if f.isNaN(a) || f.isNaN(b) {
			return minMaxNaN(f, a, b, sign, nan)
		}
		if f.before(b, a) != isMax {
			a = b
		}
		return a | sign
	}
	if f != &f32 || ftz || xorsign {
		return binary(t, each2(t, one)), true
	}
	return binary(t, func(a, b uint64) uint64 { // ordinary numbers, quickly
		switch x, y := toF32(a), toF32(b); {
		case x < y && !isMax, x > y && isMax:
			return a
		case x < y, x > y:
			return b
		}
		return one(a, b)
	}), true
}

// before reports whether a is below b, -0 below +0.
func (f *format) before(a, b uint64) bool {
	return signed(f.key(a), f.width) < signed(f.key(b), f.width)
}

// key maps a number to a signed integer, in the same order.
func (f *format) key(a uint64) uint64 {
	if a&f.sign() != 0 {
		return a ^ (f.sign() - 1)
	}
	return a
}

// makeCopysign makes copysign: b with the sign of a.
func makeCopysign(in *ptx.Instr) (Op, bool) {
	f := formatOf(last(in))
	if f != &f32 && f != &f64 {
		return Op{}, false
	}
	return binary(last(in), func(a, b uint64) uint64 { return a&f.sign() | b&^f.sign() }), true
}
