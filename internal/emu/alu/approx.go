package alu

import (
	"math"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// Approximate instructions give the exact result, rounded to the nearest: within the error that the manual allows each
// of them, but for the last bits not a GPU's. Where an H100 shows how it comes to its results, they follow it.
//
// Source: PTX ISA 8.8, sections 9.7.3 and 9.7.4; testdata/approx.txt, recorded on an H100.

// approximations are the exact functions, by operation.
var approximations = map[string]func(x float64) float64{
	"rcp":   func(x float64) float64 { return 1 / x },
	"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"sqrt":  math.Sqrt,
	"ex2":   math.Exp2,
	"lg2":   log2,
	"tanh":  math.Tanh,
	"sin":   func(x float64) float64 { return circle(x, 0) },
	"cos":   func(x float64) float64 { return circle(x, 1) },
}

// log2 is math.Log2, which cancels near 1.
func log2(x float64) float64 {
	if x > 0.5 && x < 2 {
		return math.Log(x) * math.Log2E
	}
	return math.Log2(x)
}

// circle is the sine of an angle and some quarters of a turn, as the hardware reduces it: it multiplies with 1/2π, both
// of 24 bits, rounds toward zero, and takes 25 bits behind the point. The second and the fourth quarter are the first
// with all bits turned over.
func circle(x float64, quarters int) float64 {
	t := x * float64(math.Float32frombits(0x3e22f983))
	if t-t != 0 {
		return math.NaN()
	}
	t = math.Mod(math.Abs(f32.value(f32.round(t, zero))), 1)
	n := int(t * (1 << 25))
	const quarter = 1 << 23
	at, k := n&(quarter-1), (n/quarter+quarters)&3
	if k&1 != 0 {
		at ^= quarter - 1
	}
	v := math.Sin(math.Pi / 2 / quarter * float64(at))
	if (k&2 != 0) != (quarters == 0 && math.Signbit(x)) {
		return -v
	}
	return v
}

// makeApprox is the approximate instructions.
func makeApprox(in *ptx.Instr) (Op, bool) {
	t := last(in)
	f := formatOf(t)
	exact := approximations[in.Op]
	switch {
	case f == nil || !in.Has("approx") && !in.Has("full"):
		return Op{}, false
	case in.Op == "div":
		op := binary(t, divide(in))
		op.Approximate = true
		return op, t == ptx.F32
	}
	op := unary(t, each1(t, approximate(in, f, exact)))
	op.Approximate = true
	return op, exact != nil
}

func approximate(in *ptx.Instr, f *format, exact func(x float64) float64) func(a uint64) uint64 {
	ftz := in.Has("ftz")
	if f == &f64 && ftz {
		return func(a uint64) uint64 { return upper(a, exact) }
	}
	end := finisher(in, f, nearest)
	return func(a uint64) uint64 {
		switch {
		case f.isNaN(a) && f == &f64:
			return chooseNaN64(a)
		case f.isNaN(a):
			return f.nan
		case ftz:
			a = f.flush(a)
		}
		return end(exact(f.value(a)))
	}
}

// upper is a function of the upper words of a float64 and of its result, the rest of which is cut off.
func upper(a uint64, exact func(x float64) float64) uint64 {
	const low = 1<<32 - 1
	a = f64.flush(a &^ low)
	x := exact(math.Float64frombits(a))
	if f64.isNaN(a) || x != x {
		return 0x7fffffff << 32
	}
	return f64.flush(math.Float64bits(x) &^ low)
}

// divide multiplies with the rounded reciprocal. Without .full that is zero where it would be denormal.
func divide(in *ptx.Instr) func(a, b uint64) uint64 {
	ftz, full := in.Has("ftz"), in.Has("full")
	end := finisher(in, &f32, nearest)
	return func(a, b uint64) uint64 {
		if ftz {
			a, b = f32.flush(a), f32.flush(b)
		}
		x, y := f32.value(a), f32.value(b)
		size := math.Abs(y)
		if size == 0 || size-size != 0 {
			return end(x / y)
		}
		if !full && size > 0x1p126 {
			return end(x * math.Copysign(0, y))
		}
		m, e := math.Frexp(y)
		return end(math.Ldexp(x*f32.value(f32.round(1/m, nearest)), -e))
	}
}
