package alu

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// makeLogic is and, or, xor, not and cnot.
func makeLogic(in *ptx.Instr) (Op, bool) {
	t := last(in)
	ok := t == ptx.Pred || t == ptx.B16 || t == ptx.B32 || t == ptx.B64
	switch in.Op {
	case "and":
		return binary(t, func(a, b uint64) uint64 { return a & b }), ok
	case "or":
		return binary(t, func(a, b uint64) uint64 { return a | b }), ok
	case "xor":
		return binary(t, func(a, b uint64) uint64 { return a ^ b }), ok
	case "not":
		return unary(t, func(a uint64) uint64 { return ^a }), ok
	}
	m := ones(t.Bits()) // cnot
	return unary(t, func(a uint64) uint64 { return truth(a&m == 0) }), ok
}

// makeLop3 is any function of three bits: bit 4a+2b+c of the immediate is its value.
func makeLop3(in *ptx.Instr) (Op, bool) {
	n := len(in.Operands)
	if n == 0 || in.Operands[n-1].Kind != ptx.ImmOperand || last(in) != ptx.B32 {
		return Op{}, false
	}
	table := in.Operands[n-1].Imm
	term := func(k int) uint64 { return -(table >> k & 1) }
	t0, t1, t2, t3, t4, t5, t6, t7 := term(0), term(1), term(2), term(3), term(4), term(5), term(6), term(7)
	op := ternary(ptx.B32, func(a, b, c uint64) uint64 {
		return ^a&(^b&(^c&t0|c&t1)|b&(^c&t2|c&t3)) | a&(^b&(^c&t4|c&t5)|b&(^c&t6|c&t7))
	})
	op.Srcs = 4
	return op, true
}

// A shift by the width or more shifts everything out.
func makeShl(in *ptx.Instr) (Op, bool) {
	t := last(in)
	return binary(t, func(a, b uint64) uint64 { return a << uint32(b) }), t == ptx.B16 || t == ptx.B32 || t == ptx.B64
}

func makeShr(in *ptx.Instr) (Op, bool) {
	t := last(in)
	n := t.Bits()
	if t.Signed() {
		return binary(t, func(a, b uint64) uint64 { return uint64(signed(a, n) >> uint32(b)) }), true
	}
	m := ones(n)
	_, ok := byType(t, 0, 0, 0, 0, 0, 0)
	return binary(t, func(a, b uint64) uint64 { return a & m >> uint32(b) }), ok && !t.Float()
}

// makeShf shifts 64 bits, b above a, and keeps the upper (left) or lower half.
func makeShf(in *ptx.Instr) (Op, bool) {
	amount := clampOrWrap(in)
	ok := last(in) == ptx.B32 && in.Has("l") != in.Has("r") && in.Has("clamp") != in.Has("wrap")
	if in.Has("l") {
		return ternary(ptx.B32, func(a, b, c uint64) uint64 { return (b<<32 | a&ones(32)) << amount(c) >> 32 }), ok
	}
	return ternary(ptx.B32, func(a, b, c uint64) uint64 { return (b<<32 | a&ones(32)) >> amount(c) }), ok
}

// fieldOf limits positions and lengths: in 32 bits only their low 8 bits count.
func fieldOf(n int) func(v uint64) int {
	if n == 32 {
		return func(v uint64) int { return int(uint8(v)) }
	}
	return func(v uint64) int { return int(uint32(v)) }
}

// makeBfe extracts a field. Beyond the top there are zeros, or copies of the sign.
func makeBfe(in *ptx.Instr) (Op, bool) {
	t := last(in)
	n := t.Bits()
	field := fieldOf(n)
	if t.Signed() {
		return ternary(t, func(a, pos, length uint64) uint64 {
			v := signed(a, n) >> field(pos)
			switch l := field(length); {
			case l == 0:
				return 0
			case l < 64:
				v = signed(uint64(v), l)
			}
			return uint64(v)
		}), t == ptx.S32 || t == ptx.S64
	}
	m := ones(n)
	return ternary(t, func(a, pos, length uint64) uint64 {
		return a & m >> field(pos) & ones(field(length))
	}), t == ptx.U32 || t == ptx.U64
}

// makeBfi puts the low bits of a into b.
func makeBfi(in *ptx.Instr) (Op, bool) {
	t := last(in)
	field := fieldOf(t.Bits())
	return quaternary(t, func(a, b, pos, length uint64) uint64 {
		p := field(pos)
		into := ones(field(length)) << p
		return b&^into | a<<p&into
	}), t == ptx.B32 || t == ptx.B64
}

// makeBfind finds the most significant bit, of a signed number the most
// significant one that is not the sign; all bits set when there is none.
func makeBfind(in *ptx.Instr) (Op, bool) {
	t := last(in)
	n := t.Bits()
	amount := in.Has("shiftamt")
	return unary(ptx.U32, func(a uint64) uint64 {
		if t.Signed() {
			v := signed(a, n)
			a = uint64(v ^ v>>63)
		}
		k := bits.Len64(a&ones(n)) - 1
		if k >= 0 && amount {
			k = n - 1 - k
		}
		return uint64(k)
	}), t == ptx.U32 || t == ptx.S32 || t == ptx.U64 || t == ptx.S64
}

func makeCount(in *ptx.Instr) (Op, bool) {
	t := last(in)
	n := t.Bits()
	ok := t == ptx.B32 || t == ptx.B64
	switch in.Op {
	case "clz":
		return unary(ptx.U32, func(a uint64) uint64 { return uint64(n - bits.Len64(a&ones(n))) }), ok
	case "popc":
		return unary(ptx.U32, func(a uint64) uint64 { return uint64(bits.OnesCount64(a & ones(n))) }), ok
	}
	return unary(t, func(a uint64) uint64 { return bits.Reverse64(a) >> (64 - n) }), ok // brev
}

// makeSzext extends the low b bits of a; makeBmsk sets b bits from position a.
func makeSzext(in *ptx.Instr) (Op, bool) {
	t := last(in)
	amount := clampOrWrap(in)
	return binary(t, func(a, b uint64) uint64 {
		switch n := int(amount(b)); {
		case n == 0:
			return 0
		case t.Signed():
			return uint64(signed(a, n))
		default:
			return a & ones(n)
		}
	}), (t == ptx.U32 || t == ptx.S32) && (in.Has("clamp") || in.Has("wrap"))
}

func makeBmsk(in *ptx.Instr) (Op, bool) {
	amount := clampOrWrap(in)
	return binary(ptx.B32, func(a, b uint64) uint64 { return ones(int(amount(b))) << amount(a) }), last(in) == ptx.B32 &&
		(in.Has("clamp") || in.Has("wrap"))
}

// clampOrWrap is how an amount of 32 or more is made smaller.
func clampOrWrap(in *ptx.Instr) func(n uint64) uint64 {
	if in.Has("clamp") {
		return func(n uint64) uint64 { return min(uint64(uint32(n)), 32) }
	}
	return func(n uint64) uint64 { return n & 31 }
}

// makePrmt picks four of the eight bytes of b above a. Without a mode each digit of c
// chooses a byte, or with 8 added copies of its sign; a mode takes the
// choice for all from the low two bits of c.
func makePrmt(in *ptx.Instr) (Op, bool) {
	digits := func(c uint64) uint64 { return c }
	for mode, table := range map[string][4]uint64{
		"f4e":  {0x3210, 0x4321, 0x5432, 0x6543},
		"b4e":  {0x5670, 0x6701, 0x7012, 0x0123},
		"rc8":  {0x0000, 0x1111, 0x2222, 0x3333},
		"ecl":  {0x3210, 0x3211, 0x3222, 0x3333},
		"ecr":  {0x0000, 0x1110, 0x2210, 0x3210},
		"rc16": {0x1010, 0x3232, 0x1010, 0x3232},
	} {
		if in.Has(mode) {
			digits = func(c uint64) uint64 { return table[c&3] }
		}
	}
	return ternary(ptx.B32, func(a, b, c uint64) uint64 {
		from, pick := b<<32|a&ones(32), digits(c)
		var d uint64
		for k := range 4 {
			digit := pick >> (4 * k) & 15
			v := from >> (8 * (digit & 7)) & 0xff
			if digit >= 8 {
				v = -(v >> 7) & 0xff
			}
			d |= v << (8 * k)
		}
		return d
	}), last(in) == ptx.B32
}

// makeFns finds the n-th set bit from a bit on, upward or for negative n downward; for n of 0 the bit itself. Where
// there is none all bits are set.
func makeFns(*ptx.Instr) (Op, bool) {
	return ternary(ptx.B32, func(mask, base, offset uint64) uint64 {
		n := int64(int32(offset))
		step := 1
		if n < 0 {
			n, step = -n, -1
		}
		for at := int(int32(base)); at >= 0 && at < 32; at += step {
			if mask>>at&1 != 0 {
				n--
			}
			if n <= 0 {
				if mask>>at&1 == 0 {
					break
				}
				return uint64(at)
			}
		}
		return 1<<32 - 1
	}), true
}
