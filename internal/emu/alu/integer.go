package alu

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// integer are Go's types for PTX's integers.
type integer interface {
	uint16 | int16 | uint32 | int32 | uint64 | int64
}

// byType chooses among the instances of a function; types of bits count as unsigned.
func byType[F any](t ptx.Type, u16, s16, u32, s32, u64, s64 F) (f F, ok bool) {
	switch t {
	case ptx.B16, ptx.U16, ptx.F16, ptx.BF16:
		return u16, true
	case ptx.S16:
		return s16, true
	case ptx.B32, ptx.U32, ptx.F32:
		return u32, true
	case ptx.S32:
		return s32, true
	case ptx.B64, ptx.U64, ptx.F64:
		return u64, true
	case ptx.S64:
		return s64, true
	}
	return f, false
}

// binaryInt and ternaryInt make an Op of a function for each type.
func binaryInt(t ptx.Type, u16, s16, u32, s32, u64, s64 func(a, b uint64) uint64) (Op, bool) {
	f, ok := byType(t, u16, s16, u32, s32, u64, s64)
	return binary(t, f), ok && t.Integer()
}

func ternaryInt(t ptx.Type, u16, s16, u32, s32, u64, s64 func(a, b, c uint64) uint64) (Op, bool) {
	f, ok := byType(t, u16, s16, u32, s32, u64, s64)
	return ternary(t, f), ok && t.Integer()
}

func add[T integer](a, b uint64) uint64 { return uint64(T(a) + T(b)) }
func sub[T integer](a, b uint64) uint64 { return uint64(T(a) - T(b)) }
func mul[T integer](a, b uint64) uint64 { return uint64(T(a) * T(b)) }

func least[T integer](a, b uint64) uint64    { return uint64(min(T(a), T(b))) }
func greatest[T integer](a, b uint64) uint64 { return uint64(max(T(a), T(b))) }

// The quotient and the rest of a division by zero have all bits set.
func div[T integer](a, b uint64) uint64 {
	if T(b) == 0 {
		return 1<<64 - 1
	}
	return uint64(T(a) / T(b))
}

func rem[T integer](a, b uint64) uint64 {
	if T(b) == 0 {
		return 1<<64 - 1
	}
	return uint64(T(a) % T(b))
}

// mulHi is for 16 and 32 bits: the bits above the product's low half.
func mulHi[T integer](width int) func(a, b uint64) uint64 {
	return func(a, b uint64) uint64 { return uint64(int64(T(a))*int64(T(b))) >> width }
}

func mulHiU64(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi
}

func mulHiS64(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi - uint64(int64(a)>>63)&b - uint64(int64(b)>>63)&a
}

func mulWide[T integer](a, b uint64) uint64 { return uint64(int64(T(a)) * int64(T(b))) }

// product is the function that a mul or mad multiplies with, and its result's type.
func product(in *ptx.Instr) (f func(a, b uint64) uint64, result ptx.Type, ok bool) {
	if len(in.Types) != 1 || !in.Types[0].Integer() {
		return nil, 0, false
	}
	t := in.Types[0]
	switch {
	case in.Has("lo"):
		f, ok = byType(t, mul[uint16], mul[int16], mul[uint32], mul[int32], mul[uint64], mul[int64])
		return f, t, ok
	case in.Has("hi"):
		f, ok = byType(t, mulHi[uint16](16), mulHi[int16](16), mulHi[uint32](32), mulHi[int32](32), mulHiU64, mulHiS64)
		return f, t, ok
	case in.Has("wide"):
		result, ok = map[ptx.Type]ptx.Type{ptx.U16: ptx.U32, ptx.S16: ptx.S32, ptx.U32: ptx.U64, ptx.S32: ptx.S64}[t]
		f, _ = byType(t, mulWide[uint16], mulWide[int16], mulWide[uint32], mulWide[int32], nil, nil)
		return f, result, ok
	}
	return nil, 0, false
}

func makeMul(in *ptx.Instr) (Op, bool) {
	if last(in).Float() {
		return makeFloat(in)
	}
	f, t, ok := product(in)
	if !ok {
		return Op{}, false
	}
	return binary(t, f), true
}

func makeMad(in *ptx.Instr) (Op, bool) {
	if last(in).Float() {
		return makeFloat(in)
	}
	f, t, ok := product(in)
	switch {
	case !ok:
		return Op{}, false
	case in.Has("cc") || in.Op == "madc":
		return withCarry(in, t, 3, func(a, b, c, carry uint64) (uint64, uint64) {
			return addCarry(t.Bits(), f(a, b)&ones(t.Bits()), c, carry)
		})
	case in.Has("sat"):
		return ternary(t, func(a, b, c uint64) uint64 {
			return uint64(clamp(int64(int32(f(a, b)))+int64(int32(c)), 32))
		}), t == ptx.S32
	}
	return ternary(t, func(a, b, c uint64) uint64 { return f(a, b) + c }), true
}

// makeMul24 is mul24 and mad24: the lower or upper 32 of the 48 bits of the product of 24-bit numbers.
func makeMul24(in *ptx.Instr) (Op, bool) {
	t, shift := last(in), 0
	if in.Has("hi") {
		shift = 16
	}
	f := func(a, b uint64) uint64 { return a & ones(24) * (b & ones(24)) >> shift }
	if t.Signed() {
		f = func(a, b uint64) uint64 { return uint64(signed(a, 24) * signed(b, 24) >> shift) }
	}
	switch {
	case t != ptx.U32 && t != ptx.S32:
		return Op{}, false
	case in.Op == "mul24":
		return binary(t, f), true
	case in.Has("sat"):
		return ternary(t, func(a, b, c uint64) uint64 {
			return uint64(clamp(int64(int32(f(a, b)))+int64(int32(c)), 32))
		}), t == ptx.S32
	}
	return ternary(t, func(a, b, c uint64) uint64 { return f(a, b) + c }), true
}

// clamp is the nearest signed number of n bits.
func clamp(v int64, n int) int64 {
	top := int64(1)<<(n-1) - 1
	return min(max(v, -top-1), top)
}

func makeAdd(in *ptx.Instr) (Op, bool) {
	t := last(in)
	switch {
	case t.Float():
		return makeFloat(in)
	case in.Has("cc") || in.Op == "addc":
		return withCarry(in, t, 2, func(a, b, c, _ uint64) (uint64, uint64) { return addCarry(t.Bits(), a, b, c) })
	case in.Has("sat"):
		return binary(t, func(a, b uint64) uint64 { return uint64(clamp(int64(int32(a))+int64(int32(b)), 32)) }), t == ptx.S32
	case t == ptx.U16x2 || t == ptx.S16x2:
		return binary(t, each2(t, add[uint16])), true
	}
	return binaryInt(t, add[uint16], add[int16], add[uint32], add[int32], add[uint64], add[int64])
}

func makeSub(in *ptx.Instr) (Op, bool) {
	t := last(in)
	switch {
	case t.Float():
		return makeFloat(in)
	case in.Has("cc") || in.Op == "subc":
		return withCarry(in, t, 2, func(a, b, c, _ uint64) (uint64, uint64) { return subBorrow(t.Bits(), a, b, c) })
	case in.Has("sat"):
		return binary(t, func(a, b uint64) uint64 { return uint64(clamp(int64(int32(a))-int64(int32(b)), 32)) }), t == ptx.S32
	}
	return binaryInt(t, sub[uint16], sub[int16], sub[uint32], sub[int32], sub[uint64], sub[int64])
}

// withCarry is an Op with n sources and a carry in, out or both. f gets it as
// the source after the others, zero when the instruction takes none.
func withCarry(in *ptx.Instr, t ptx.Type, n int, f func(a, b, c, d uint64) (x, y uint64)) (op Op, ok bool) {
	wide, ok := byType(t, false, false, true, true, true, true)
	takes, out := in.Op[len(in.Op)-1] == 'c', in.Has("cc")
	if takes {
		n++
	}
	switch {
	case out:
		op = pair(t, n, f)
	case n == 3:
		op = ternary(t, func(a, b, c uint64) uint64 { x, _ := f(a, b, c, 0); return x })
	default:
		op = quaternary(t, func(a, b, c, d uint64) uint64 { x, _ := f(a, b, c, d); return x })
	}
	op.CarryIn, op.CarryOut = takes, out
	return op, ok && wide && t.Integer()
}

func addCarry(width int, a, b, carry uint64) (sum, out uint64) {
	sum, out = bits.Add64(a, b, carry)
	if width < 64 {
		return sum, sum >> width & 1
	}
	return sum, out
}

func subBorrow(width int, a, b, borrow uint64) (diff, out uint64) {
	diff, out = bits.Sub64(a, b, borrow)
	if width < 64 {
		return diff, diff >> width & 1
	}
	return diff, out
}

func makeDiv(in *ptx.Instr) (Op, bool) {
	switch {
	case in.Has("approx"), in.Has("full"):
		return makeApprox(in)
	case last(in).Float():
		return makeFloat(in)
	}
	return binaryInt(last(in), div[uint16], div[int16], div[uint32], div[int32], div[uint64], div[int64])
}

func makeRem(in *ptx.Instr) (Op, bool) {
	return binaryInt(last(in), rem[uint16], rem[int16], rem[uint32], rem[int32], rem[uint64], rem[int64])
}

func makeMinMax(in *ptx.Instr) (Op, bool) {
	t := last(in)
	if t.Float() {
		return makeFloatMinMax(in)
	}
	of := elementOf(t)
	f, ok := byType(of, least[uint16], least[int16], least[uint32], least[int32], least[uint64], least[int64])
	if in.Op == "max" {
		f, ok = byType(of, greatest[uint16], greatest[int16], greatest[uint32], greatest[int32], greatest[uint64],
			greatest[int64])
	}
	if in.Has("relu") {
		ok = ok && (of == ptx.S16 || of == ptx.S32)
		g := f
		f = func(a, b uint64) uint64 { return uint64(max(0, signed(g(a, b), of.Bits()))) }
	}
	return binary(t, each2(t, f)), ok && t.Integer()
}

func makeAbs(in *ptx.Instr) (Op, bool) {
	t := last(in)
	if t.Float() {
		return makeFloatSign(in)
	}
	n := t.Bits()
	return unary(t, func(a uint64) uint64 {
		v := signed(a, n)
		return uint64(max(v, -v))
	}), t.Signed()
}

func makeNeg(in *ptx.Instr) (Op, bool) {
	t := last(in)
	if t.Float() {
		return makeFloatSign(in)
	}
	return unary(t, func(a uint64) uint64 { return -a }), t.Signed()
}

// sad adds the distance of a and b to c.
func sad[T integer](a, b, c uint64) uint64 {
	x, y := T(a), T(b)
	return uint64(max(x, y)-min(x, y)) + c
}

func makeSad(in *ptx.Instr) (Op, bool) {
	return ternaryInt(last(in), sad[uint16], sad[int16], sad[uint32], sad[int32], sad[uint64], sad[int64])
}

// makeDot is dp4a, four products of bytes, and dp2a, two of a half of a and a byte of b.
func makeDot(in *ptx.Instr) (Op, bool) {
	if len(in.Types) != 2 {
		return Op{}, false
	}
	n, width, from := 4, 8, 0
	if in.Op == "dp2a" {
		n, width = 2, 16
		if in.Has("hi") {
			from = 2
		}
	}
	element := func(t ptx.Type, a uint64, k, width int) int64 {
		if t.Signed() {
			return signed(a>>(k*width), width)
		}
		return int64(a >> (k * width) & ones(width))
	}
	ta, tb := in.Types[0], in.Types[1]
	return ternary(ptx.B32, func(a, b, c uint64) uint64 {
		for k := range n {
			c += uint64(element(ta, a, k, width) * element(tb, b, from+k, 8))
		}
		return c
	}), true
}

// last is the last type in the name.
func last(in *ptx.Instr) ptx.Type {
	if len(in.Types) == 0 {
		return ptx.NoType
	}
	return in.Types[len(in.Types)-1]
}
