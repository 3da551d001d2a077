package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type vec = reg.VecVirtual

// A machine is an instruction set. Its methods are the instructions that the
// two sets spell differently; most are the same but for the registers. Methods
// that return a register leave their operands alone.
type machine struct {
	name    string // as in the tables
	width   int    // bytes of a register
	crowded bool   // see constant
	consts  map[string]*constant
}

var (
	avx2   = &machine{name: "avx2", width: 32}
	avx512 = &machine{name: "avx512", width: 64}
)

func (m *machine) wide() bool { return m.width == 64 }

func (m *machine) vec() vec {
	if m.wide() {
		return ZMM()
	}
	return YMM()
}

// halfVec is a register of half the width.
func (m *machine) halfVec() vec {
	if m.wide() {
		return YMM()
	}
	return XMM()
}

// half is the lower half of a register.
func (m *machine) half(v vec) reg.Register {
	if m.wide() {
		return v.AsY()
	}
	return v.AsX()
}

func (m *machine) load(at Mem) vec {
	v := m.vec()
	if m.wide() {
		VMOVDQU32(at, v)
	} else {
		VMOVDQU(at, v)
	}
	return v
}

func (m *machine) store(v vec, at Mem) {
	if m.wide() {
		VMOVDQU32(v, at)
	} else {
		VMOVDQU(v, at)
	}
}

// A constant has the same bits in every lane. Where there are too many to keep
// them in registers (crowded), they come from memory every time.
type constant struct {
	at  Mem
	reg vec
}

func (m *machine) constant(name string, bits uint64, size int) {
	for ; size < 64; size *= 2 {
		bits |= bits << size
	}
	at, ok := constants[bits]
	if !ok {
		at = ConstData(fmt.Sprintf("lanes%016x", bits), U64(bits))
		constants[bits] = at
	}
	c := &constant{at: at}
	if !m.crowded {
		c.reg = m.vec()
		VPBROADCASTQ(at, c.reg)
	}
	m.consts[name] = c
}

// constants are the constants written to memory so far, by their bits.
var constants = map[uint64]Mem{}

// get is the register of a constant, to be read only.
func (m *machine) get(name string) vec {
	c := m.consts[name]
	if c.reg != nil {
		return c.reg
	}
	v := m.vec()
	VPBROADCASTQ(c.at, v)
	return v
}

// spread is the lower bits of a general register in every lane.
func (m *machine) spread(r reg.GPVirtual, size int) vec {
	x, v := XMM(), m.vec()
	VMOVQ(r, x)
	switch size {
	case 8:
		VPBROADCASTB(x, v)
	case 16:
		VPBROADCASTW(x, v)
	case 32:
		VPBROADCASTD(x, v)
	case 64:
		VPBROADCASTQ(x, v)
	}
	return v
}

func (m *machine) and(a, b Op) vec {
	v := m.vec()
	if m.wide() {
		VPANDD(b, a, v)
	} else {
		VPAND(b, a, v)
	}
	return v
}

func (m *machine) or(a, b Op) vec {
	v := m.vec()
	if m.wide() {
		VPORD(b, a, v)
	} else {
		VPOR(b, a, v)
	}
	return v
}

func (m *machine) xor(a, b Op) vec {
	v := m.vec()
	if m.wide() {
		VPXORD(b, a, v)
	} else {
		VPXOR(b, a, v)
	}
	return v
}

// halfAnd and halfOr are for half registers. AVX-512 has 32 of them, which only
// AVX-512's own instructions reach.
func (m *machine) halfAnd(b, a, dst Op) {
	if m.wide() {
		VPANDD(b, a, dst)
	} else {
		VPAND(b, a, dst)
	}
}

func (m *machine) halfOr(b, a, dst Op) {
	if m.wide() {
		VPORD(b, a, dst)
	} else {
		VPOR(b, a, dst)
	}
}

// A mask says for each lane yes or no.
type mask = Op

// isNaN is the mask of NaNs, in lanes of 32 or 64 bits.
func (m *machine) isNaN(v vec, bits int) mask {
	const unordered = 3
	var k Op = m.mask()
	if bits == 32 {
		VCMPPS(Imm(unordered), v, v, k)
	} else {
		VCMPPD(Imm(unordered), v, v, k)
	}
	return k
}

func (m *machine) mask() mask {
	if m.wide() {
		return K()
	}
	return YMM()
}

// pick is yes where the mask says so, else no, in lanes of 8 to 64 bits.
func (m *machine) pick(k mask, yes, no vec, bits int) vec {
	v := m.vec()
	if !m.wide() {
		VPBLENDVB(k, yes, no, v)
		return v
	}
	VMOVDQA64(no, v) // not VPBLENDM: avo takes its result for an operand
	return m.replace(k, yes, v, bits)
}

// replace is pick that may overwrite the register no.
func (m *machine) replace(k mask, yes, no vec, bits int) vec {
	switch {
	case !m.wide():
		VPBLENDVB(k, yes, no, no)
	case bits == 8:
		VMOVDQU8(yes, k, no)
	case bits == 16:
		VMOVDQU16(yes, k, no)
	case bits == 32:
		VMOVDQA32(yes, k, no)
	case bits == 64:
		VMOVDQA64(yes, k, no)
	}
	return no
}

// above is the mask of lanes in which a is greater than b, as signed integers of 8 or
// 16 bits, or, without AVX-512, of 64.
func (m *machine) above(a, b vec, bits int) mask {
	const greater = 6
	k := m.mask()
	switch {
	case m.wide() && bits == 8:
		VPCMPB(Imm(greater), b, a, k)
	case m.wide() && bits == 16:
		VPCMPW(Imm(greater), b, a, k)
	case bits == 8:
		VPCMPGTB(b, a, k)
	case bits == 16:
		VPCMPGTW(b, a, k)
	default:
		VPCMPGTQ(b, a, k)
	}
	return k
}

// to is a form of an instruction that makes a new register of two.
func to(m *machine, f func(...Op), b, a Op) vec {
	v := m.vec()
	f(b, a, v)
	return v
}
