package alu

import "github.com/ringo-go/ringo/internal/emu/ptx"

// The hardware's treatment of NaNs, signed zeros and denormal numbers where IEEE 754
// leaves a choice. Recorded on an H200, see testdata.

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

// quiet is the bit that is set in quiet NaNs.
func (f *format) quiet() uint64 { return 1 << (f.man - 1) }

// chooseNaN64 is the NaN that float64 arithmetic gives: the first operand that
// is one, made quiet. The hardware looks at b first, then at c, then at a.
func chooseNaN64(operands ...uint64) uint64 {
	for _, a := range operands {
		if f64.isNaN(a) {
			return a | f64.quiet()
		}
	}
	return nanF64
}

// atomicNaN64 is the NaN that an atomic addition leaves in memory: in global
// memory a NaN as it is, signalling or not; in shared memory, where it is a
// loop of ordinary additions, a quiet one.
func atomicNaN64(old, v uint64, shared bool) uint64 {
	switch {
	case shared:
		return chooseNaN64(old, v)
	case f64.isNaN(v):
		return v
	case f64.isNaN(old):
		return old
	}
	return nanF64
}

// signNaN is abs or neg of a NaN: a float64 keeps its sign.
func signNaN(f *format, a uint64) uint64 {
	if f == &f64 {
		return a | f.quiet()
	}
	return f.nan
}

// minMaxNaN is min or max when at least one operand is a NaN: the other, or
// with .NaN a NaN.
func minMaxNaN(f *format, a, b, sign uint64, nan bool) uint64 {
	switch {
	case nan || f.isNaN(a) && f.isNaN(b):
		if f == &f64 {
			return chooseNaN64(b, a)
		}
		return f.nan
	case f.isNaN(a):
		return b | sign
	}
	return a | sign
}

// intOfNaN is the integer to which a NaN of a format converts.
func intOfNaN(f *format, d ptx.Type) uint64 {
	if d.Bits() == 64 || f == &f64 {
		return 1 << (d.Bits() - 1)
	}
	return 0
}

// cvtNaN is the NaN to which a NaN of another format converts. Conversions from
// and to float64 keep sign and payload; other types have one NaN only, except
// where the conversion is a move of bits.
func cvtNaN(in *ptx.Instr, from, to *format, a uint64) uint64 {
	switch {
	case from == to && len(in.Mods) == 2 && (to == &f32 || to == &f64):
		return a
	case from == &bf16 && to == &f32:
		return a << 16
	case from == &f32 && to == &f64 && in.Has("ftz"):
		return carryNaN(from, to, nanF32)
	case from == &f64 || to == &f64:
		return carryNaN(from, to, a)
	case in.Has("rna") && in.Has("satfinite"): // as an infinity becomes max
		return a&^ones(to.low) - 1<<to.low
	case in.Has("rna"):
		return a &^ ones(to.low)
	}
	return to.nan << to.low
}

// carryNaN keeps the sign and the upper bits of the payload.
func carryNaN(from, to *format, a uint64) uint64 {
	payload := a & ones(from.man) << (64 - from.man) >> (64 - to.man)
	return a>>(from.width-1)<<(to.width-1) | to.inf | to.quiet() | payload
}
