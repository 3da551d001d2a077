package alu

import (
	"math"
	"math/big"

	"github.com/ringo-go/ringo/internal/ptx"
)

// Arithmetic on types narrower than float64 is done in float64, rounded to odd:
// what is not exact gets an odd last bit. Rounding that again to 50 bits or
// fewer gives, in every direction, what rounding the exact result once gives.
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

// exact compares the exact result of an operation on finite float64s with r.
func exact(op string, a, b, c, r float64) int {
	const prec = 2200 * 2 // of sums of products of any two
	num := func(v float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(v) }
	x, y, z, res := num(a), num(b), num(c), num(r)
	switch op {
	case "add":
		return x.Add(x, y).Cmp(res)
	case "mul":
		return x.Mul(x, y).Cmp(res)
	case "fma":
		return x.Add(x.Mul(x, y), z).Cmp(res)
	case "div":
		if math.IsInf(r, 0) {
			return -res.Sign()
		}
		return x.Cmp(res.Mul(res, y)) * y.Sign()
	}
	return x.Cmp(res.Mul(res, res)) // sqrt
}

// direct moves r, the result of an operation rounded to nearest, where the
// rounding wants it. Costs about a microsecond.
func direct(op string, a, b, c, r float64, dir rounding) float64 {
	for _, v := range []float64{a, b, c} {
		if v-v != 0 { // not finite
			return r
		}
	}
	if r != r || op == "div" && b == 0 {
		return r
	}
	above := exact(op, a, b, c, r)
	if above == 0 && r == 0 {
		p, q := a, b
		if op == "fma" {
			p, q = math.Copysign(1, a)*math.Copysign(1, b), c
		}
		if (op == "add" || op == "fma") && dir == down && math.Signbit(p) != math.Signbit(q) {
			return math.Copysign(0, -1)
		}
		return r
	}
	switch {
	case above < 0 && (dir == down || dir == zero && r > 0):
		return math.Nextafter(r, math.Inf(-1))
	case above > 0 && (dir == up || dir == zero && r < 0):
		return math.Nextafter(r, math.Inf(1))
	}
	return r
}

// makeFloat is add, sub, mul, fma, mad, div, rcp and sqrt.
func makeFloat(in *ptx.Instr) (Op, bool) {
	t := last(in)
	if approximate(in) {
		return Op{}, false
	}
	if t == ptx.F64 {
		return makeFloat64(in)
	}
	f := formatOf(t)
	if f == nil || f.width < 16 || f == &tf32 || in.Has("lo") || in.Has("hi") || in.Has("wide") || in.Has("cc") {
		return Op{}, false
	}
	r := roundingOf(in.Mods)
	end := finisher(in, f, r)
	plain := r == nearest && !in.Has("ftz") && !in.Has("sat") && !in.Has("relu")
	if quick := quickBinary[in.Op][elementOf(t)]; plain && quick != nil {
		return binary(t, eachOf2(t, quick)), true
	}
	plain = plain && f == &f32
	value := f.value
	if in.Has("ftz") {
		value = func(a uint64) float64 { return f.value(f.flush(a)) }
	}
	two := func(g func(a, b float64) float64) (Op, bool) {
		return binary(t, eachOf2(t, func(a, b uint64) uint64 { return end(g(value(a), value(b))) })), true
	}
	switch in.Op {
	case "add":
		if plain {
			return binary(t, addF32), true
		}
		return two(func(a, b float64) float64 { return addOdd(a, b, r) })
	case "sub":
		if plain {
			return binary(t, subF32), true
		}
		return two(func(a, b float64) float64 { return addOdd(a, -b, r) })
	case "mul":
		if plain {
			return binary(t, mulF32), true
		}
		return two(mulOdd)
	case "fma", "mad":
		if plain {
			return ternary(t, fmaF32), true
		}
		return ternary(t, eachOf3(t, func(a, b, c uint64) uint64 {
			return end(fmaOdd(value(a), value(b), value(c), r))
		})), true
	case "div":
		return two(divOdd)
	case "rcp":
		return unary(t, func(a uint64) uint64 { return end(divOdd(1, value(a))) }), t == ptx.F32
	case "sqrt":
		return unary(t, func(a uint64) uint64 { return end(sqrtOdd(value(a))) }), t == ptx.F32
	}
	return Op{}, false
}

// finisher rounds a result and does what the modifiers say with it.
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

// elementOf is the type of a packed type's elements, other types stay.
func elementOf(t ptx.Type) ptx.Type {
	switch t {
	case ptx.F16x2:
		return ptx.F16
	case ptx.BF16x2:
		return ptx.BF16
	}
	return t
}

// eachOf2 and eachOf3 apply f to both halves if the type is packed.
func eachOf2(t ptx.Type, f func(a, b uint64) uint64) func(a, b uint64) uint64 {
	if t == ptx.F16x2 || t == ptx.BF16x2 {
		return packed(f)
	}
	return f
}

func eachOf3(t ptx.Type, f func(a, b, c uint64) uint64) func(a, b, c uint64) uint64 {
	if t != ptx.F16x2 && t != ptx.BF16x2 {
		return f
	}
	return func(a, b, c uint64) uint64 {
		return f(a>>16&0xffff, b>>16&0xffff, c>>16&0xffff)<<16 | f(a&0xffff, b&0xffff, c&0xffff)&0xffff
	}
}

// fromF32 is the bits of a result in float32.
func fromF32(v float32) uint64 {
	if v != v {
		return nanF32
	}
	return uint64(math.Float32bits(v))
}

func toF32(a uint64) float32 { return math.Float32frombits(uint32(a)) }

func addF32(a, b uint64) uint64 { return fromF32(toF32(a) + toF32(b)) }
func subF32(a, b uint64) uint64 { return fromF32(toF32(a) - toF32(b)) }
func mulF32(a, b uint64) uint64 { return fromF32(toF32(a) * toF32(b)) }

// fmaF32 rounds the sum twice only where that cannot do harm: where the
// float64 does not lie halfway between two float32s.
func fmaF32(a, b, c uint64) uint64 {
	p, z := float64(toF32(a))*float64(toF32(b)), float64(toF32(c))
	s := p + z
	if b := math.Float64bits(s); b<<35 == 1<<63 || b<<1 < (1023-125)<<53 {
		s = addOdd(p, z, nearest)
	}
	return fromF32(float32(s))
}

func addF64(a, b uint64) uint64 { return fromF64(toF64(a)+toF64(b), b, a) }
func subF64(a, b uint64) uint64 { return fromF64(toF64(a)-toF64(b), b, a) }
func mulF64(a, b uint64) uint64 { return fromF64(toF64(a)*toF64(b), b, a) }

func fmaF64(a, b, c uint64) uint64 {
	v := math.FMA(toF64(a), toF64(b), toF64(c))
	if v != v {
		return chooseNaN64(b, c, a)
	}
	return math.Float64bits(v)
}

func toF64(a uint64) float64 { return math.Float64frombits(a) }

// fromF64 is the bits of a result of b and a.
func fromF64(v float64, b, a uint64) uint64 {
	if v != v {
		return chooseNaN64(b, a)
	}
	return math.Float64bits(v)
}

// makeFloat64 is makeFloat for float64.
func makeFloat64(in *ptx.Instr) (Op, bool) {
	r := roundingOf(in.Mods)
	if r == nearest {
		switch in.Op {
		case "add":
			return binary(ptx.F64, addF64), true
		case "sub":
			return binary(ptx.F64, subF64), true
		case "mul":
			return binary(ptx.F64, mulF64), true
		case "fma", "mad":
			return ternary(ptx.F64, fmaF64), true
		}
	}
	toward := func(op string, a, b, c, near float64) float64 {
		if r == nearest {
			return near
		}
		return direct(op, a, b, c, near, r)
	}
	num, bits := math.Float64frombits, math.Float64bits
	two := func(f func(a, b float64) float64) (Op, bool) {
		return binary(ptx.F64, func(a, b uint64) uint64 {
			if v := f(num(a), num(b)); v == v {
				return bits(v)
			}
			if in.Op == "div" { // which is many instructions
				return chooseNaN64(a, b)
			}
			return chooseNaN64(b, a)
		}), true
	}
	one := func(f func(a float64) float64) (Op, bool) {
		return unary(ptx.F64, func(a uint64) uint64 {
			if v := f(num(a)); v == v {
				return bits(v)
			}
			return chooseNaN64(a)
		}), true
	}
	switch in.Op {
	case "add":
		return two(func(a, b float64) float64 { return toward("add", a, b, 0, a+b) })
	case "sub":
		return two(func(a, b float64) float64 { return toward("add", a, -b, 0, a-b) })
	case "mul":
		return two(func(a, b float64) float64 { return toward("mul", a, b, 0, a*b) })
	case "div":
		return two(func(a, b float64) float64 { return toward("div", a, b, 0, a/b) })
	case "rcp":
		return one(func(a float64) float64 { return toward("div", 1, a, 0, 1/a) })
	case "sqrt":
		return one(func(a float64) float64 { return toward("sqrt", a, 0, 0, math.Sqrt(a)) })
	case "fma", "mad":
		return ternary(ptx.F64, func(a, b, c uint64) uint64 {
			near := fmaF64(a, b, c)
			if f64.isNaN(near) {
				return near
			}
			return bits(toward("fma", num(a), num(b), num(c), num(near)))
		}), true
	}
	return Op{}, false
}
