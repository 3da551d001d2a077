package alu

import (
	"math"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// The commonest operations, rounded to nearest and without modifiers, quicker
// than arith.go and format.go do it for all types and roundings.
//
// Those on float16 and bfloat16 go by way of float32, which has more than twice
// their bits and two: sums and products rounded twice are then the same as rounded once.
//
// Source: Figueroa, When is double rounding innocuous?, SIGNUM Newsletter 30(3), 1995.

// quickBinary are by operation and type of an element.
var quickBinary = map[string]map[ptx.Type]func(a, b uint64) uint64{
	"add": {
		ptx.F64:  func(a, b uint64) uint64 { return fromF64(toF64(a)+toF64(b), a, b) },
		ptx.F32:  func(a, b uint64) uint64 { return fromF32(toF32(a) + toF32(b)) },
		ptx.F16:  func(a, b uint64) uint64 { return narrowF16(widenF16(a) + widenF16(b)) },
		ptx.BF16: func(a, b uint64) uint64 { return narrowBF16(widenBF16(a) + widenBF16(b)) },
	},
	"sub": {
		ptx.F64:  func(a, b uint64) uint64 { return fromF64(toF64(a)-toF64(b), a, b) },
		ptx.F32:  func(a, b uint64) uint64 { return fromF32(toF32(a) - toF32(b)) },
		ptx.F16:  func(a, b uint64) uint64 { return narrowF16(widenF16(a) - widenF16(b)) },
		ptx.BF16: func(a, b uint64) uint64 { return narrowBF16(widenBF16(a) - widenBF16(b)) },
	},
	"mul": { // not of bfloat16, whose products can be denormal float32s
		ptx.F64: func(a, b uint64) uint64 { return fromF64(toF64(a)*toF64(b), a, b) },
		ptx.F32: func(a, b uint64) uint64 { return fromF32(toF32(a) * toF32(b)) },
		ptx.F16: func(a, b uint64) uint64 { return narrowF16(widenF16(a) * widenF16(b)) },
	},
}

// quickTernary are by operation and type.
var quickTernary = map[string]map[ptx.Type]func(a, b, c uint64) uint64{
	"fma": {ptx.F32: fmaF32, ptx.F64: fmaF64},
	"mad": {ptx.F32: fmaF32, ptx.F64: fmaF64},
}

// testInt is a comparison of integers that is true for the orders that are wanted.
func testInt[T integer](want order) func(a, b uint64) bool {
	switch want {
	case less:
		return func(a, b uint64) bool { return T(a) < T(b) }
	case less | equal:
		return func(a, b uint64) bool { return T(a) <= T(b) }
	case equal:
		return func(a, b uint64) bool { return T(a) == T(b) }
	case less | greater:
		return func(a, b uint64) bool { return T(a) != T(b) }
	case greater | equal:
		return func(a, b uint64) bool { return T(a) >= T(b) }
	case greater:
		return func(a, b uint64) bool { return T(a) > T(b) }
	}
	return func(a, b uint64) bool { return orderOf(T(a), T(b))&want != 0 }
}

// quickCvt are by the whole name.
var quickCvt = map[string]func(a uint64) uint64{
	"cvt.f32.f16":     func(a uint64) uint64 { return fromF32(widenF16(a)) },
	"cvt.rn.f16.f32":  func(a uint64) uint64 { return narrowF16(toF32(a)) },
	"cvt.rn.bf16.f32": func(a uint64) uint64 { return narrowBF16(toF32(a)) },
}

func toF32(a uint64) float32 { return math.Float32frombits(uint32(a)) }
func toF64(a uint64) float64 { return math.Float64frombits(a) }

// fromF32 is the bits of a result.
func fromF32(v float32) uint64 {
	if v != v {
		return nanF32
	}
	return uint64(math.Float32bits(v))
}

// fromF64 is the bits of a result of a and b.
func fromF64(v float64, a, b uint64) uint64 {
	if v != v {
		return chooseNaN64(b, a)
	}
	return math.Float64bits(v)
}

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

func fmaF64(a, b, c uint64) uint64 {
	v := math.FMA(toF64(a), toF64(b), toF64(c))
	if v != v {
		return chooseNaN64(b, c, a)
	}
	return math.Float64bits(v)
}

func widenF16(a uint64) float32 {
	magnitude, sign := uint32(a&0x7fff)<<13, uint32(a&0x8000)<<16
	if magnitude >= 0x1f<<23 {
		return math.Float32frombits(sign | magnitude | 0xff<<23)
	}
	// A multiplication rebiases the exponent, of denormals, too.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(magnitude)*0x1p112))
}

func widenBF16(a uint64) float32 { return math.Float32frombits(uint32(a) << 16) }

func narrowF16(v float32) uint64 {
	b := math.Float32bits(v)
	sign := uint64(b >> 16 & 0x8000)
	switch b &= 1<<31 - 1; {
	case b > 0xff<<23:
		return nanF16
	case b >= (127+16)<<23:
		return sign | 0x7c00
	case b < (127-14)<<23: // denormal: added to a half, its last digit is the sum's
		return sign | uint64(math.Float32bits(math.Float32frombits(b)+0.5)&0xffff)
	}
	b += 1<<12 - 1 + b>>13&1
	return sign | uint64((b-112<<23)>>13)
}

func narrowBF16(v float32) uint64 {
	b := math.Float32bits(v)
	if b&(1<<31-1) > 0xff<<23 {
		return nanBF16
	}
	return uint64((b + 1<<15 - 1 + b>>16&1) >> 16)
}
