package alu

import (
	"math"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// Arithmetic on types narrower than float64 is done in float64, rounded to odd: an
// inexact result gets an odd last bit. Rounding that again to 50 bits or fewer gives, in
// every direction, the same as rounding the exact result once.
//
// Source: Boldo and Melquiond, Emulation of FMA and correctly rounded sums:
// proved algorithms using rounding to odd, IEEE Trans. Computers 57(4), 2008.

// odd makes s, to which the exact result adds err, odd unless it is exact.
func odd(s, err float64) float64 {
	b := math.Float64bits(s)
	if err == 0 || b&1 == 1 || math.IsInf(s, 0) || s != s || err != err {
		return s
	}
	if (err > 0) == (s > 0) {
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}

// addOdd is a + b; the sum of opposite numbers has the sign that r gives it.
func addOdd(a, b float64, r rounding) float64 {
	s := a + b
	if s == 0 {
		if r == down && math.Signbit(a) != math.Signbit(b) {
			return math.Copysign(0, -1)
		}
		return s
	}
	t := s - a
	return odd(s, (a-(s-t))+(b-t))
}

// The products of two narrower numbers are exact.
func mulOdd(a, b float64) float64 { return a * b }

func fmaOdd(a, b, c float64, r rounding) float64 { return addOdd(float64(a*b), c, r) }

func divOdd(a, b float64) float64 {
	q := a / b
	rest := math.FMA(-q, b, a)
	if b < 0 {
		rest = -rest
	}
	return odd(q, rest)
}

func sqrtOdd(a float64) float64 {
	s := math.Sqrt(a)
	return odd(s, math.FMA(-s, s, a))
}

// makeFloat is add, sub, mul, fma, mad, div, rcp and sqrt.
func makeFloat(in *ptx.Instr) (Op, bool) {
	t := last(in)
	f := formatOf(t)
	if f == nil || f.width < 16 || f == &tf32 || in.Has("lo") || in.Has("hi") || in.Has("wide") || in.Has("cc") {
		return Op{}, false
	}
	r := roundingOf(in.Mods)
	ftz := in.Has("ftz")
	plain := !ftz && !in.Has("sat") && !in.Has("relu")
	if plain && r == nearest {
		if quick := quickBinary[in.Op][elementOf(t)]; quick != nil {
			return binary(t, each2(t, quick)), true
		}
		if quick := quickTernary[in.Op][t]; quick != nil {
			return ternary(t, quick), true
		}
	}
	if f == &f64 {
		op, ok := makeFloat64(in, r)
		return op, ok && plain
	}
	end := finisher(in, f, r)
	value := f.value
	if ftz {
		value = func(a uint64) float64 { return f.value(f.flush(a)) }
	}
	two := func(g func(a, b float64) float64) Op {
		return binary(t, each2(t, func(a, b uint64) uint64 { return end(g(value(a), value(b))) }))
	}
	switch in.Op {
	case "add":
		return two(func(a, b float64) float64 { return addOdd(a, b, r) }), true
	case "sub":
		return two(func(a, b float64) float64 { return addOdd(a, -b, r) }), true
	case "mul":
		return two(mulOdd), true
	case "fma", "mad":
		return ternary(t, each3(t, func(a, b, c uint64) uint64 {
			return end(fmaOdd(value(a), value(b), value(c), r))
		})), true
	case "div":
		return two(divOdd), f == &f32
	case "rcp":
		return unary(t, func(a uint64) uint64 { return end(divOdd(1, value(a))) }), f == &f32
	case "sqrt":
		return unary(t, func(a uint64) uint64 { return end(sqrtOdd(value(a))) }), f == &f32
	}
	return Op{}, false
}

// finisher rounds a result and applies the modifiers.
func finisher(in *ptx.Instr, f *format, r rounding) func(x float64) uint64 {
	ftz, sat, relu := in.Has("ftz"), in.Has("sat"), in.Has("relu")
	return func(x float64) uint64 {
		if x != x {
			if sat {
				return 0
			}
			return f.nan
		}
		if sat || relu {
			x = max(x, 0)
		}
		if sat {
			x = min(x, 1)
		}
		if ftz {
			return f.roundFlush(x, r)
		}
		return f.round(x, r)
	}
}
