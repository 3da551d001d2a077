package alu

import (
	"math"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A Product is what mma and wmma.mma compute: D = A·B + C, of elements of the types.
type Product struct {
	Shape      ptx.Shape
	D, A, B, C ptx.Type
	Satfinite  bool // sums of integers stop at the greatest and the least, where others wrap
}

// mostElements is the greatest number of elements that a matrix of a product has.
const mostElements = 512

// Run makes the function that computes the product for a warp, of the registers with fragments: see Cells. Those of D
// may be those of others.
//
// PTX leaves the order of additions and their roundings open, but for integers, and tensor cores differ from each
// other. Here products of two elements are exact in float64, the sum of them and C is of float64 in the order of K,
// and is rounded to the type of D once. Sums of integers are exact. Products of float64 are added by fma in the order
// of K.
func (p Product) Run() func(d, a, b, c []*Lanes) {
	s := p.Shape
	cellsA, cellsB := Cells(s, 'A', p.A), Cells(s, 'B', p.B)
	cellsC, cellsD := Cells(s, 'C', p.C), Cells(s, 'C', p.D)
	valueA, valueB, valueC, result := elementValue(p.A), elementValue(p.B), elementValue(p.C), p.result()
	return func(d, a, b, c []*Lanes) {
		var x, y, z [mostElements]float64
		for _, e := range cellsA {
			x[e.Row*s.K+e.Col] = valueA(a[e.Reg][e.Lane] >> e.Shift)
		}
		for _, e := range cellsB {
			y[e.Col*s.K+e.Row] = valueB(b[e.Reg][e.Lane] >> e.Shift)
		}
		for _, e := range cellsC {
			z[e.Row*s.N+e.Col] = valueC(c[e.Reg][e.Lane] >> e.Shift)
		}
		for _, e := range cellsD {
			row, col := x[e.Row*s.K:][:s.K], y[e.Col*s.K:][:s.K]
			sum := z[e.Row*s.N+e.Col]
			if p.D == ptx.F64 {
				for k := range row {
					sum = toF64(fmaF64(math.Float64bits(row[k]), math.Float64bits(col[k]), math.Float64bits(sum)))
				}
			} else {
				for k := range row {
					sum += row[k] * col[k]
				}
			}
			to := &d[e.Reg][e.Lane]
			if e.Shift == 0 {
				*to = 0
			}
			*to |= result(sum) << e.Shift
		}
	}
}

// elementValue is the number in the low bits of a register.
func elementValue(t ptx.Type) func(a uint64) float64 {
	switch t {
	case ptx.U8:
		return func(a uint64) float64 { return float64(uint8(a)) }
	case ptx.S8:
		return func(a uint64) float64 { return float64(int8(a)) }
	case ptx.S32:
		return func(a uint64) float64 { return float64(int32(a)) }
	case ptx.F16:
		return func(a uint64) float64 { return float64(widenF16(a & 0xffff)) }
	case ptx.BF16:
		return func(a uint64) float64 { return float64(widenBF16(a & 0xffff)) }
	case ptx.TF32: // the other bits of a float32 do not count
		return func(a uint64) float64 { return float64(toF32(a &^ ones(tf32.low))) }
	case ptx.E4M3:
		return func(a uint64) float64 { return e4m3.value(a & 0xff) }
	case ptx.E5M2:
		return func(a uint64) float64 { return e5m2.value(a & 0xff) }
	case ptx.F64:
		return toF64
	}
	return func(a uint64) float64 { return float64(toF32(a)) }
}

// result is the bits of an element of D.
func (p Product) result() func(sum float64) uint64 {
	switch p.D {
	case ptx.F64:
		return math.Float64bits
	case ptx.S32:
		return func(sum float64) uint64 {
			if p.Satfinite {
				sum = max(math.MinInt32, min(sum, math.MaxInt32))
			}
			return uint64(uint32(int64(sum)))
		}
	}
	f := formatOf(p.D)
	return func(sum float64) uint64 {
		if sum != sum {
			return f.nan
		}
		return f.round(sum, nearest)
	}
}
