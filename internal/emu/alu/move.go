package alu

import "github.com/ringo-go/ringo/internal/emu/ptx"

// makeMov copies a register, or packs a vector into one, or unpacks it.
func makeMov(in *ptx.Instr) (Op, bool) {
	t := last(in)
	if t == ptx.NoType || len(in.Operands) != 2 {
		return Op{}, false
	}
	width := func(elems []ptx.Operand) int { return t.Bits() / max(1, len(elems)) }
	switch dst, src := in.Operands[0], in.Operands[1]; {
	case dst.Kind == ptx.VecOperand:
		return unpack(len(dst.Elems), width(dst.Elems)), true
	case src.Kind == ptx.VecOperand:
		return pack(len(src.Elems), width(src.Elems)), true
	}
	return unary(t, func(a uint64) uint64 { return a }), true
}

// pack puts n elements of a width together, the first lowest.
func pack(n, width int) Op {
	m := ones(width)
	if n == 2 {
		return binary(ptx.B64, func(a, b uint64) uint64 { return b&m<<width | a&m })
	}
	return Op{Dsts: 1, Srcs: n, Run: func(mask uint32, dst, src []*Lanes) {
		for i := range dst[0] {
			if mask>>i&1 == 0 {
				continue
			}
			var v uint64
			for k, s := range src[:n] {
				v |= s[i] & m << (k * width)
			}
			dst[0][i] = v
		}
	}}
}

// unpack takes a register apart.
func unpack(n, width int) Op {
	m := ones(width)
	return Op{Dsts: n, Srcs: 1, Run: func(mask uint32, dst, src []*Lanes) {
		for i, v := range *src[0] {
			if mask>>i&1 == 0 {
				continue
			}
			for k, d := range dst[:n] {
				d[i] = v >> (k * width) & m
			}
		}
	}}
}

// makeSelp is c ? a : b.
func makeSelp(in *ptx.Instr) (Op, bool) {
	t := last(in)
	return ternary(t, func(a, b, c uint64) uint64 {
		if c != 0 {
			return a
		}
		return b
	}), t != ptx.NoType
}

// makeSlct is c ≥ 0 ? a : b. A NaN is not.
func makeSlct(in *ptx.Instr) (Op, bool) {
	if len(in.Types) != 2 {
		return Op{}, false
	}
	t := in.Types[0]
	choose := func(yes func(c uint64) bool) Op {
		return ternary(t, func(a, b, c uint64) uint64 {
			if yes(c) {
				return a
			}
			return b
		})
	}
	switch in.Types[1] {
	case ptx.S32:
		return choose(func(c uint64) bool { return int32(c) >= 0 }), true
	case ptx.F32:
		f := &f32
		if in.Has("ftz") {
			return choose(func(c uint64) bool { return f.value(f.flush(c)) >= 0 }), true
		}
		return choose(func(c uint64) bool { return f.value(c) >= 0 }), true
	}
	return Op{}, false
}
