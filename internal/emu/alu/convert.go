package alu

import (
	"math"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// makeCvt converts between any two types.
func makeCvt(in *ptx.Instr) (Op, bool) {
	if len(in.Types) != 2 {
		return Op{}, false
	}
	d, t := in.Types[0], in.Types[1]
	if quick := quickCvt[in.Name()]; quick != nil {
		return unary(d, quick), true
	}
	var one func(a uint64) uint64
	switch {
	case d.Integer() && t.Integer():
		one = intToInt(in, d, t)
	case d.Integer():
		one = floatToInt(in, d, t)
	case t.Integer():
		one = intToFloat(in, d, t)
	case isPacked(d):
		return packedToPacked(in, d, t)
	case formatOf(d) != nil && formatOf(t) != nil:
		one = floatToFloat(in, d, t)
	}
	if one == nil {
		return Op{}, false
	}
	op := unary(d, one)
	if d.Signed() && d.Bits() < 64 {
		op.Signed = d.Bits()
	}
	return op, true
}

func isPacked(t ptx.Type) bool {
	return t == ptx.F16x2 || t == ptx.BF16x2 || t == ptx.E4M3x2 || t == ptx.E5M2x2
}

// magnitude takes an integer apart.
func magnitude(a uint64, t ptx.Type) (neg bool, m uint64) {
	if t.Signed() {
		if v := signed(a, t.Bits()); v < 0 {
			return true, uint64(-v)
		}
	}
	return false, a & ones(t.Bits())
}

// limit is the nearest number of a type to ±m.
func limit(neg bool, m uint64, t ptx.Type) uint64 {
	switch n := t.Bits(); {
	case neg && !t.Signed():
		return 0
	case neg:
		return -min(m, 1<<(n-1))
	case t.Signed():
		return min(m, ones(n-1))
	default:
		return min(m, ones(n))
	}
}

func intToInt(in *ptx.Instr, d, t ptx.Type) func(a uint64) uint64 {
	if in.Has("sat") {
		return func(a uint64) uint64 {
			neg, m := magnitude(a, t)
			return limit(neg, m, d)
		}
	}
	if n := t.Bits(); t.Signed() {
		return func(a uint64) uint64 { return uint64(signed(a, n)) }
	}
	m := ones(t.Bits())
	return func(a uint64) uint64 { return a & m }
}

func intToFloat(in *ptx.Instr, d, t ptx.Type) func(a uint64) uint64 {
	f, r := formatOf(d), roundingOf(in.Mods)
	if f == nil || isPacked(d) {
		return nil
	}
	sat := in.Has("sat")
	return func(a uint64) uint64 {
		neg, m := magnitude(a, t)
		if sat {
			if m = min(m, 1); neg {
				m = 0
			}
		}
		return f.roundInt(neg && m != 0, m, 0, r)
	}
}

// integral is the whole number next to v in a direction.
func integral(v float64, r rounding) float64 {
	switch r {
	case zero:
		return math.Trunc(v)
	case down:
		return math.Floor(v)
	case up:
		return math.Ceil(v)
	}
	return math.RoundToEven(v)
}

// floatToInt always goes to the nearest number of the type; .sat changes nothing.
func floatToInt(in *ptx.Instr, d, t ptx.Type) func(a uint64) uint64 {
	f, r, ftz := formatOf(t), roundingOf(in.Mods), in.Has("ftz")
	if f == nil || isPacked(t) {
		return nil
	}
	return func(a uint64) uint64 {
		if f.isNaN(a) {
			return intOfNaN(f, d)
		}
		if ftz {
			a = f.flush(a)
		}
		v := integral(f.value(a), r)
		m := uint64(math.MaxUint64)
		if math.Abs(v) < 0x1p64 {
			m = uint64(math.Abs(v))
		}
		return limit(v < 0, m, d)
	}
}

// floatToFloat rounds to a type, or to a whole number within one.
func floatToFloat(in *ptx.Instr, d, t ptx.Type) func(a uint64) uint64 {
	from, to, r := formatOf(t), formatOf(d), roundingOf(in.Mods)
	ftz, sat, relu := in.Has("ftz"), in.Has("sat"), in.Has("relu")
	whole := in.Has("rni") || in.Has("rzi") || in.Has("rmi") || in.Has("rpi")
	if in.Has("satfinite") {
		to = to.saturating()
	}
	return func(a uint64) uint64 {
		if from.isNaN(a) {
			if sat {
				return 0
			}
			return cvtNaN(in, from, to, a)
		}
		if ftz && from == &f32 {
			a = from.flush(a)
		}
		v := from.value(a)
		if whole {
			v = integral(v, r)
		}
		if sat || relu {
			v = max(v, 0)
		}
		if sat {
			v = min(v, 1)
		}
		if ftz && to == &f32 {
			return to.roundFlush(v, r)
		}
		return to.round(v, r)
	}
}

// saturating is the format without infinities: too large numbers become max.
func (f *format) saturating() *format {
	g := *f
	g.inf = 0
	return &g
}

// packedToPacked makes two elements, of two float32 (the first becomes the
// upper one) or of the elements of another packed type.
func packedToPacked(in *ptx.Instr, d, t ptx.Type) (Op, bool) {
	element := floatToFloat(in, d, t)
	n := d.Bits() / 2
	if t == ptx.F32 {
		return binary(d, func(a, b uint64) uint64 { return element(a)<<n | element(b) }), true
	}
	from := t.Bits() / 2
	m := ones(from)
	return unary(d, func(a uint64) uint64 { return element(a>>from&m)<<n | element(a&m) }), isPacked(t)
}
