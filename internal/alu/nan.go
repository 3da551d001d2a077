package alu

import (
	"math"

	"github.com/ringo-go/ringo/internal/ptx"
)

// Here is what the hardware does with NaNs, signed zeros and denormal numbers
// where IEEE 754 leaves a choice. Recorded on an H200, see testdata.

// The NaNs that arithmetic and conversions make, whatever NaN they were given.
const (
	nanF32  = 0x7fffffff
	nanF16  = 0x7fff
	nanBF16 = 0x7fff
	nanTF32 = 0x3ffff
	nanE4M3 = 0x7f
	nanE5M2 = 0x7f
	nanF64  = 0xfff8 << 48 // of an invalid operation
)

// quiet64 is set in quiet NaNs.
const quiet64 = 1 << 51

// chooseNaN64 is the NaN that float64 arithmetic on operands gives, in the
// order in which the hardware looks at them: the first NaN, made quiet.
func chooseNaN64(operands ...uint64) uint64 {
	for _, a := range operands {
		if f64.isNaN(a) {
			return a | quiet64
		}
	}
	return nanF64
}

// widenNaN is the float64 that a float32 NaN converts to.
func widenNaN(a uint64) uint64 { return math.Float64bits(float64(math.Float32frombits(uint32(a)))) }

// signNaN is abs or neg of a, which is b unless a is a NaN.
func signNaN(f *format, a, b uint64) uint64 {
	if f != &f64 && f.isNaN(a) {
		return f.nan
	}
	return b
}

// minMaxNaN is min or max when at least one operand is a NaN: the other, or
// with .NaN a NaN.
func minMaxNaN(f *format, a, b, sign uint64, nan bool) uint64 {
	switch {
	case nan || f.isNaN(a) && f.isNaN(b):
		if f == &f64 {
			return chooseNaN64(a, b)
		}
		return f.nan
	case f.isNaN(a):
		return b | sign
	}
	return a | sign
}

// intOfNaN is what a NaN of a format converts to in an integer type.
func intOfNaN(f *format, d ptx.Type) uint64 {
	if d.Bits() == 64 || f == &f64 {
		return 1 << (d.Bits() - 1)
	}
	return 0
}

// cvtNaN is what a NaN of one format converts to in another.
func cvtNaN(from, to *format, a uint64) uint64 {
	if from == &f32 && to == &f64 {
		return widenNaN(a)
	}
	return to.nan << to.low
}
