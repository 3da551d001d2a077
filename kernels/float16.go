package kernels

import "math"

// The element types Go lacks, as bit patterns. The caller of a collective passes a
// slice of one of these types for the DataType of the similar name.
type (
	F16    uint16 // IEEE 754 binary16: 5 exponent bits, 10 mantissa bits
	BF16   uint16 // bfloat16: the upper half of a float32
	F8E4M3 uint8  // OCP E4M3: largest value 448, no infinities
	F8E5M2 uint8  // OCP E5M2: the upper half of a binary16
)

// NaNs that ⊕ and the conversions to a type make; see the package comment.
const (
	nanF64    = 1<<63 - 1
	nanF32    = 1<<31 - 1
	nanF16    = 1<<15 - 1
	nanBF16   = 1<<15 - 1
	nanF8E4M3 = 1<<7 - 1
	nanF8E5M2 = 1<<7 - 1
)

// infF32 is the bits of an infinite float32 without the sign. Greater ones are NaNs.
const infF32 = 0xff << 23

// Float32 is the same number as a float32.
func (h F16) Float32() float32 {
	bits := uint32(h&0x7fff) << 13 // mantissa in place, exponent too small by 112
	sign := uint32(h&0x8000) << 16
	if bits >= 0x1f<<23 {
		return math.Float32frombits(sign | infF32 | bits)
	}
	// A multiplication rebiases the exponent of denormals, too.
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(bits)*0x1p112))
}

// NewF16 rounds f to nearest even; above 65504 that may be an infinity.
func NewF16(f float32) F16 {
	bits := math.Float32bits(f)
	sign := F16(bits >> 16 & 0x8000)
	switch bits &= 1<<31 - 1; {
	case bits > infF32:
		return nanF16
	case bits >= (127+16)<<23:
		return sign | 0x7c00
	case bits < (127-14)<<23: // denormal: float32s of 0.5 to 1 are multiples of 2⁻²⁴, as denormals are
		return sign | F16(math.Float32bits(math.Float32frombits(bits)+0.5))
	}
	bits += 1<<12 - 1 + bits>>13&1
	return sign | F16((bits-112<<23)>>13)
}

// Float32 is the same number as a float32.
func (h BF16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

// NewBF16 rounds f to nearest even; a number that is too large becomes an infinity.
func NewBF16(f float32) BF16 {
	bits := math.Float32bits(f)
	if bits&(1<<31-1) > infF32 {
		return nanBF16
	}
	return BF16((bits + 1<<15 - 1 + bits>>16&1) >> 16)
}

// Float32 is the same number as a float32.
func (h F8E4M3) Float32() float32 {
	bits := uint32(h&0x7f) << 20 // exponent too small by 120
	sign := uint32(h&0x80) << 24
	if h&0x7f == 0x7f {
		return math.Float32frombits(sign | nanF32)
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(bits)*0x1p120))
}

// NewF8E4M3 rounds f to nearest even; a number that is too large, or infinite, becomes ±448.
func NewF8E4M3(f float32) F8E4M3 {
	bits := math.Float32bits(f)
	sign := F8E4M3(bits >> 24 & 0x80)
	switch bits &= 1<<31 - 1; {
	case bits > infF32:
		return nanF8E4M3
	case bits >= 0x43e00000: // 448
		return sign | 0x7e
	case bits < (127-6)<<23: // denormal: float32s from 2¹⁴ on are multiples of 2⁻⁹
		return sign | F8E4M3(math.Float32bits(math.Float32frombits(bits)+0x1p14))
	}
	bits += 1<<19 - 1 + bits>>20&1
	return sign | F8E4M3((bits-120<<23)>>20)
}

// Float32 is the same number as a float32.
func (h F8E5M2) Float32() float32 {
	bits := uint32(h&0x7f) << 21 // exponent too small by 112
	sign := uint32(h&0x80) << 24
	if bits >= 0x1f<<23 {
		return math.Float32frombits(sign | infF32 | bits)
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(bits)*0x1p112))
}

// NewF8E5M2 rounds f to nearest even; a number that is too large, or infinite, becomes
// ±57344.
func NewF8E5M2(f float32) F8E5M2 {
	bits := math.Float32bits(f)
	sign := F8E5M2(bits >> 24 & 0x80)
	switch bits &= 1<<31 - 1; {
	case bits > infF32:
		return nanF8E5M2
	case bits >= 0x47600000: // 57344
		return sign | 0x7b
	case bits < (127-14)<<23: // denormal: float32s from 2⁷ on are multiples of 2⁻¹⁶
		return sign | F8E5M2(math.Float32bits(math.Float32frombits(bits)+0x1p7))
	}
	bits += 1<<20 - 1 + bits>>21&1
	return sign | F8E5M2((bits-112<<23)>>21)
}
