package alu

import (
	"math"
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A format is a floating-point type: sign, exponent and man bits of mantissa,
// above low bits that are always zero (of tf32).
type format struct {
	width, man, low int
	emin            int     // exponent of the smallest normal number
	max             uint64  // bits of the greatest finite number
	inf             uint64  // 0 if the format makes none: too large numbers become max
	least           uint64  // the least bits of a NaN
	nan             uint64  // the NaN that arithmetic and conversions make
	scale           float64 // the ratio between the format's numbers and float64s with the same exponent bits
}

var (
	f64  = format{width: 64, man: 52, emin: -1022, max: 0x7ff<<52 - 1, inf: 0x7ff << 52, least: 0x7ff<<52 + 1, nan: nanF64}
	f32  = format{width: 32, man: 23, emin: -126, max: 0xff<<23 - 1, inf: 0xff << 23, least: 0xff<<23 + 1, nan: nanF32}
	bf16 = format{width: 16, man: 7, emin: -126, max: 0xff<<7 - 1, inf: 0xff << 7, least: 0xff<<7 + 1, nan: nanBF16}
	tf32 = format{width: 19, man: 10, low: 13, emin: -126, max: 0xff<<10 - 1, inf: 0xff << 10, least: 0xff<<10 + 1,
		nan: nanTF32}
	f16 = format{width: 16, man: 10, emin: -14, max: 0x1f<<10 - 1, inf: 0x1f << 10, least: 0x1f<<10 + 1, nan: nanF16,
		scale: 0x1p1008}
	e5m2 = format{width: 8, man: 2, emin: -14, max: 0x7b, least: 0x7d, nan: nanE5M2, scale: 0x1p1008}
	e4m3 = format{width: 8, man: 3, emin: -6, max: 0x7e, least: 0x7f, nan: nanE4M3, scale: 0x1p1016}
)

// formatOf is the format of a floating-point type, or of an element of a packed type; nil for others.
func formatOf(t ptx.Type) *format {
	switch t {
	case ptx.F64:
		return &f64
	case ptx.F32:
		return &f32
	case ptx.F16, ptx.F16x2:
		return &f16
	case ptx.BF16, ptx.BF16x2:
		return &bf16
	case ptx.TF32:
		return &tf32
	case ptx.E4M3x2:
		return &e4m3
	case ptx.E5M2x2:
		return &e5m2
	}
	return nil
}

// A rounding is a direction.
type rounding uint8

const (
	nearest  rounding = iota // ties to even
	zero                     // toward zero
	down                     // toward −∞
	up                       // toward +∞
	tiesAway                 // to nearest, ties away from zero
)

// roundingOf is the rounding in a name, to nearest if there is none.
func roundingOf(mods []string) rounding {
	for _, m := range mods {
		switch m {
		case "rn", "rni":
			return nearest
		case "rz", "rzi":
			return zero
		case "rm", "rmi":
			return down
		case "rp", "rpi":
			return up
		case "rna":
			return tiesAway
		}
	}
	return nearest
}

func (f *format) sign() uint64 { return 1 << (f.width - 1) }

func (f *format) isNaN(a uint64) bool { return a&(f.sign()-1) >= f.least }

// flush is zero with the sign of a for a denormal number, otherwise a.
func (f *format) flush(a uint64) uint64 {
	if a&(f.sign()-1) < 1<<f.man {
		return a & f.sign()
	}
	return a
}

// value is the number as a float64, which is exact; a NaN gives some NaN.
func (f *format) value(a uint64) float64 {
	switch f {
	case &f32:
		return float64(math.Float32frombits(uint32(a)))
	case &f64:
		return math.Float64frombits(a)
	case &bf16:
		return float64(math.Float32frombits(uint32(a) << 16))
	}
	magnitude := a & (f.sign() - 1)
	v := math.Float64frombits(magnitude<<(52-f.man)) * f.scale
	if magnitude > f.max {
		v = math.Inf(1)
		if magnitude >= f.least {
			v = math.NaN()
		}
	}
	if a&f.sign() != 0 {
		return -v
	}
	return v
}

// round is the bits of x, which is not a NaN, rounded once.
func (f *format) round(x float64, r rounding) uint64 {
	b := math.Float64bits(x)
	if r == nearest && f.man < 52 { // ordinary numbers, quickly
		magnitude, shift := b&^(1<<63), 52-f.man
		if least := uint64(1023+f.emin) << 52; magnitude >= least && magnitude < 0x7ff<<52 {
			magnitude += 1<<(shift-1) - 1 + magnitude>>shift&1
			if a := (magnitude-least)>>shift + 1<<f.man; a <= f.max {
				return (b>>63<<(f.width-1) | a) << f.low
			}
		}
	}
	exp, man := int(b>>52&0x7ff), b&(1<<52-1)
	switch {
	case exp == 0x7ff:
		return f.tooLarge(b>>63 != 0, true, r)
	case exp == 0:
		exp = 1
	default:
		man |= 1 << 52
	}
	return f.roundInt(b>>63 != 0, man, exp-1023-52, r)
}

// roundFlush is round for .ftz: zero for a number that is denormal after rounding to
// man bits as if the exponent had no limit.
func (f *format) roundFlush(x float64, r rounding) uint64 {
	least := math.Ldexp(1, f.emin)
	if math.Abs(x) >= least {
		return f.round(x, r)
	}
	scale := float64(uint64(2) << f.man)
	if math.Abs(f.value(f.round(x*scale, r))) < least*scale {
		x = math.Copysign(0, x)
	} else {
		x = math.Copysign(least, x)
	}
	return f.round(x, zero)
}

// roundInt is the bits of ±m · 2^e, rounded once.
func (f *format) roundInt(neg bool, m uint64, e int, r rounding) uint64 {
	var sign uint64
	if neg {
		sign = f.sign() << f.low
	}
	if m == 0 {
		return sign
	}
	lead := bits.LeadingZeros64(m)
	m, e = m<<lead, e-lead+63 // now 2^e ≤ the number < 2^(e+1)
	shift := 63 - f.man
	if e < f.emin { // denormal: fewer bits
		shift, e = shift+f.emin-e, f.emin
	}
	kept, lost, half := uint64(0), uint64(1), uint64(1)<<63
	if shift <= 64 {
		kept, lost = m>>shift, m<<(64-shift)
	}
	switch r {
	case nearest:
		if lost > half || lost == half && kept&1 == 1 {
			kept++
		}
	case tiesAway:
		if lost >= half {
			kept++
		}
	case down:
		if neg && lost != 0 {
			kept++
		}
	case up:
		if !neg && lost != 0 {
			kept++
		}
	}
	// The leading bit of a normal number adds one to the exponent, as does a carry.
	a := kept + uint64(e-f.emin)<<f.man
	if a > f.max {
		return f.tooLarge(neg, false, r)
	}
	return sign | a<<f.low
}

// tooLarge is the result for an infinity, or for a number beyond the greatest.
func (f *format) tooLarge(neg, infinite bool, r rounding) uint64 {
	var sign uint64
	if neg {
		sign = f.sign()
	}
	toMax := r == zero || r == down && !neg || r == up && neg
	if f.inf == 0 || toMax && !infinite {
		return (sign | f.max) << f.low
	}
	return (sign | f.inf) << f.low
}
