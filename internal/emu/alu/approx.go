package alu

import (
	"math"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// Approximate instructions give the exact result, rounded to the nearest: within the error that the manual allows each
// of them, but for the last bits not a GPU's. Where the manual gives a method or a table of special values, they follow.
//
// Source: PTX ISA 8.8, sections 9.7.3 and 9.7.4.

// approximations are the exact functions, by operation.
var approximations = map[string]func(x float64) float64{
	"rcp":   func(x float64) float64 { return 1 / x },
	"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"sqrt":  math.Sqrt,
	"ex2":   math.Exp2,
	"lg2":   log2,
	"tanh":  math.Tanh,
	"sin":   func(x float64) float64 { return circle(turns(x), 0) },
	"cos":   func(x float64) float64 { return circle(turns(x), 1) },
}

// log2 is math.Log2, which cancels near 1.
func log2(x float64) float64 {
	if x > 0.5 && x < 2 {
		return math.Log(x) * math.Log2E
	}
	return math.Log2(x)
}

// turns reduces an angle as the hardware does, which explains the errors that the manual names: it multiplies with
// 1/2π, both of 24 bits, and rounds toward zero.
func turns(x float64) float64 {
	t := x * float64(math.Float32frombits(0x3e22f983))
	if t-t != 0 {
		return math.NaN()
	}
	return f32.value(f32.round(t, zero))
}

// circle is the sine of t turns and some quarters.
func circle(t float64, quarters int) float64 {
	t = math.Mod(t, 1)
	k := math.RoundToEven(4 * t)
	a := 2 * math.Pi * (t - k/4)
	switch (int(k) + quarters) & 3 {
	case 0:
		return math.Sin(a)
	case 1:
		return math.Cos(a)
	case 2:
		return -math.Sin(a)
	}
	return -math.Cos(a)
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
		case f.isNaN(a):
			return f.nan
		case ftz:
			a = f.flush(a)
		}
		return end(exact(f.value(a)))
	}
}

// upper is a function of the upper words of a float64 and of its result.
func upper(a uint64, exact func(x float64) float64) uint64 {
	const low = 1<<32 - 1
	a = f64.flush(a &^ low)
	x := exact(math.Float64frombits(a))
	if f64.isNaN(a) || x != x {
		return 0x7fffffff << 32
	}
	return f64.flush(math.Float64bits(x)+1<<31) &^ low
}

// divide multiplies with the reciprocal, or with .full divides.
func divide(in *ptx.Instr) func(a, b uint64) uint64 {
	ftz, full := in.Has("ftz"), in.Has("full")
	end := finisher(in, &f32, nearest)
	return func(a, b uint64) uint64 {
		if ftz {
			a, b = f32.flush(a), f32.flush(b)
		}
		x, y := f32.value(a), f32.value(b)
		switch size := math.Abs(y); {
		case full || size < 0x1p-126 || size-size != 0:
			return end(divOdd(x, y))
		case size > 0x1p126: // the reciprocal is denormal, and none
			return end(x * math.Copysign(0, y))
		}
		return end(x * f32.value(f32.round(1/y, nearest)))
	}
}
