package alu

import (
	"math"

	"github.com/ringo-go/ringo/internal/ptx"
)

// The commonest operations on float16 and bfloat16, rounded to nearest without
// modifiers, by way of float32: quicker than what format does for all types.
// Float32 has more than twice their bits and two, which makes sums and products
// that are rounded twice the same as rounded once.
//
// Source: Figueroa, When is double rounding innocuous?, SIGNUM Newsletter 30(3), 1995.

// quickBinary are by operation and type of an element.
var quickBinary = map[string]map[ptx.Type]func(a, b uint64) uint64{
	"add": {
		ptx.F16:  func(a, b uint64) uint64 { return narrowF16(widenF16(a) + widenF16(b)) },
		ptx.BF16: func(a, b uint64) uint64 { return narrowBF16(widenBF16(a) + widenBF16(b)) },
	},
	"sub": {
		ptx.F16:  func(a, b uint64) uint64 { return narrowF16(widenF16(a) - widenF16(b)) },
		ptx.BF16: func(a, b uint64) uint64 { return narrowBF16(widenBF16(a) - widenBF16(b)) },
	},
	"mul": { // not of bfloat16, whose products can be denormal float32s
		ptx.F16: func(a, b uint64) uint64 { return narrowF16(widenF16(a) * widenF16(b)) },
	},
}

// quickCvt are by the whole name.
var quickCvt = map[string]func(a uint64) uint64{
	"cvt.f32.f16":     func(a uint64) uint64 { return fromF32(widenF16(a)) },
	"cvt.rn.f16.f32":  func(a uint64) uint64 { return narrowF16(toF32(a)) },
	"cvt.rn.bf16.f32": func(a uint64) uint64 { return narrowBF16(toF32(a)) },
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
	case b < (127-14)<<23: // denormal: added to a half, its last place is the sum's
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
