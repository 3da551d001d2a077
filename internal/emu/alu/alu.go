// Package alu is the arithmetic of PTX instructions, for package simt: integers,
// float32, float64, float16, bfloat16, 8-bit floats, conversions and comparisons, with
// PTX's rounding and NaN rules, bit for bit as an H200 computes them; approximate instructions only within the error
// that PTX allows. Control flow, memory, shuffles and votes are not here; see packages simt and weakmem. The trap: a
// Func ignores the bits above a source's type, and callers have to do so too.
//
// testdata holds the results of all forms of all instructions, recorded on a real GPU by
// TestGPU; the tests compare. Where IEEE 754 and PTX leave a choice, nan.go has the
// hardware's.
//
// Source: PTX ISA 8.0, section 9.7.
package alu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// Lanes holds one register of the 32 threads of a warp. Values narrower than
// 64 bits are in the low bits, the rest is zero. A predicate is 0 or 1.
type Lanes [32]uint64

// A Func computes an instruction for the lanes set in mask; other lanes of the
// destinations keep their values. A destination may be one of the sources.
// src are the operands after the destinations: immediates and special
// registers already as Lanes, predicates written with ! already negated. Bits above the
// width of a source's type are ignored. The numbers of dst and src are the Op's; a
// result that the kernel discards (_) still needs a dst.
type Func func(mask uint32, dst, src []*Lanes)

// An Op is an instruction ready to run. p|q counts as two destinations, a
// vector on either side as its elements (mov.b64 {a,b}, c).
type Op struct {
	Run  Func
	Dsts int
	Srcs int

	// The carry of the thread, 0 or 1, is one more destination or source, the
	// last and counted: add.cc writes it, addc reads it, addc.cc does both.
	CarryOut, CarryIn bool

	// Signed is the width in bits of a signed result that cvt may write to a wider
	// register, which then has to be sign-extended by Extend; otherwise 0.
	Signed int

	// Approximate says that a GPU's result may differ in its last bits.
	Approximate bool
}

// Lookup finds the Op of an instruction. It looks at the name, and among the operands
// only at pairs, vectors and the table of lop3. Its error names the instruction.
func Lookup(in *ptx.Instr) (Op, error) {
	known, ok := instructions[in.Op]
	others := 0
	for _, m := range in.Mods {
		if _, compares := comparisons[m]; !slices.Contains(known.mods, m) && !(compares && known.compares) {
			others++
		}
	}
	if ok && others == len(in.Types) {
		if op, ok := known.make(in); ok {
			return op, nil
		}
	}
	return Op{}, fmt.Errorf("%s: not an instruction that computes, or not known", in.Name())
}

// An instruction is an operation that Lookup knows, in all its forms.
type instruction struct {
	make     func(in *ptx.Instr) (Op, bool) // false: not with these types
	mods     []string                       // that it can have, types and comparisons not counted
	compares bool
}

// instructions are all that Lookup knows, by operation.
var instructions = func() map[string]instruction {
	list := map[string]instruction{}
	define := func(names string, make func(in *ptx.Instr) (Op, bool), mods string) {
		for _, name := range strings.Fields(names) {
			list[name] = instruction{make, strings.Fields(mods), name == "set" || name == "setp"}
		}
	}
	const round, product = " rn rz rm rp ", " lo hi wide "
	define("add", makeAdd, "cc sat ftz"+round)
	define("sub", makeSub, "cc sat ftz"+round)
	define("addc", makeAdd, "cc")
	define("subc", makeSub, "cc")
	define("mul", makeMul, "sat ftz"+product+round)
	define("mad", makeMad, "cc sat ftz"+product+round)
	define("madc", makeMad, "cc"+product)
	define("fma", makeFloat, "sat ftz relu"+round)
	define("div rcp sqrt", makeDiv, "approx full ftz"+round)
	define("ex2 lg2 sin cos tanh rsqrt", makeApprox, "approx ftz")
	define("mul24 mad24", makeMul24, "lo hi sat")
	define("fns", makeFns, "")
	define("rem", makeRem, "")
	define("min max", makeMinMax, "ftz NaN relu xorsign abs")
	define("abs", makeAbs, "ftz")
	define("neg", makeNeg, "ftz")
	define("sad", makeSad, "")
	define("dp4a", makeDot, "")
	define("dp2a", makeDot, "lo hi")
	define("copysign", makeCopysign, "")
	define("testp", makeTestp, "finite infinite number notanumber normal subnormal")
	define("and or xor not cnot", makeLogic, "")
	define("lop3", makeLop3, "")
	define("shl", makeShl, "")
	define("shr", makeShr, "")
	define("shf", makeShf, "l r clamp wrap")
	define("bfe", makeBfe, "")
	define("bfi", makeBfi, "")
	define("bfind", makeBfind, "shiftamt")
	define("clz popc brev", makeCount, "")
	define("szext", makeSzext, "clamp wrap")
	define("bmsk", makeBmsk, "clamp wrap")
	define("prmt", makePrmt, "f4e b4e rc8 ecl ecr rc16")
	define("setp", makeSetp, "and or xor ftz")
	define("set", makeSet, "and or xor ftz")
	define("selp", makeSelp, "")
	define("slct", makeSlct, "ftz")
	define("mov", makeMov, "")
	define("cvt", makeCvt, "rni rzi rmi rpi rna ftz sat relu satfinite"+round)
	return list
}()
