package alu

import (
	"math"
	"math/big"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// makeFloat64 is makeFloat for float64. The result of Go's arithmetic, which rounds
// to nearest, is moved to its neighbour where another direction wants it.
func makeFloat64(in *ptx.Instr, r rounding) (Op, bool) {
	toward := func(op string, a, b, c, near float64) uint64 {
		if r != nearest {
			near = direct(op, a, b, c, near, r)
		}
		return math.Float64bits(near)
	}
	two := func(op string, f func(a, b float64) (x, y, near float64)) Op {
		return binary(ptx.F64, func(a, b uint64) uint64 {
			x, y, near := f(toF64(a), toF64(b))
			switch {
			case near == near:
				return toward(op, x, y, 0, near)
			case op == "div": // a routine, with an order of its own
				return chooseNaN64(a, b)
			}
			return chooseNaN64(b, a)
		})
	}
	one := func(op string, f func(a float64) (x, y, near float64)) Op {
		return unary(ptx.F64, func(a uint64) uint64 {
			x, y, near := f(toF64(a))
			if near != near {
				return chooseNaN64(a)
			}
			return toward(op, x, y, 0, near)
		})
	}
	switch in.Op {
	case "add":
		return two("add", func(a, b float64) (x, y, near float64) { return a, b, a + b }), true
	case "sub":
		return two("add", func(a, b float64) (x, y, near float64) { return a, -b, a - b }), true
	case "mul":
		return two("mul", func(a, b float64) (x, y, near float64) { return a, b, a * b }), true
	case "div":
		return two("div", func(a, b float64) (x, y, near float64) { return a, b, a / b }), true
	case "rcp":
		return one("div", func(a float64) (x, y, near float64) { return 1, a, 1 / a }), true
	case "sqrt":
		return one("sqrt", func(a float64) (x, y, near float64) { return a, 0, math.Sqrt(a) }), true
	case "fma", "mad":
		return ternary(ptx.F64, func(a, b, c uint64) uint64 {
			near := fmaF64(a, b, c)
			if f64.isNaN(near) {
				return near
			}
			return toward("fma", toF64(a), toF64(b), toF64(c), toF64(near))
		}), true
	}
	return Op{}, false
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
