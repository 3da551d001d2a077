// Package alu is what PTX instructions compute: integers, float32, float64,
// float16, bfloat16, 8-bit floats, conversions and comparisons, with PTX's
// rounding and NaN rules, bit for bit as an H200 computes them. Control flow,
// memory and what threads exchange are not here; see packages simt and weakmem.
//
// testdata holds results recorded on a real GPU; the tests compare.
//
// Source: PTX ISA 8.0, section 9.7.
package alu

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/ptx"
)

// Lanes holds one register of the 32 threads of a warp. Values narrower than
// 64 bits are in the low bits, the rest is zero. A predicate is 0 or 1.
type Lanes [32]uint64

// A Func computes an instruction for the lanes set in mask; other lanes of the
// destinations keep their values. A destination may be one of the sources.
// src are the operands after the destinations: immediates and special
// registers already as Lanes, predicates written with ! already negated. What
// is above the width of a source's type is ignored. There are as many dst and src as
// the Op says; what a kernel throws away (_) still needs a place.
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
}

// ErrApproximate says that an instruction's result is not defined to the last bit.
var ErrApproximate = errors.New("approximate instructions are not emulated, their results differ between chips: use the .rn form")

// Lookup finds what an instruction computes.
func Lookup(in *ptx.Instr) (Op, error) {
	if make, ok := makers[in.Op]; ok {
		if op, ok := make(in); ok {
			return op, nil
		}
	}
	if approximate(in) {
		return Op{}, fmt.Errorf("%s: %w", in.Name(), ErrApproximate)
	}
	return Op{}, fmt.Errorf("%s: not an instruction that computes, or not known", in.Name())
}

// approximate reports whether the instruction is a fast approximation.
func approximate(in *ptx.Instr) bool {
	switch in.Op {
	case "ex2", "lg2", "sin", "cos", "tanh", "rsqrt":
		return true
	case "div", "rcp", "sqrt":
		return in.Has("approx") || in.Has("full")
	}
	return false
}

// A maker makes the Op of an instruction, or does not know it.
type maker func(in *ptx.Instr) (Op, bool)

// makers are by operation.
var makers = map[string]maker{
	"add": makeAdd, "addc": makeAdd, "sub": makeSub, "subc": makeSub,
	"mul": makeMul, "mad": makeMad, "madc": makeMad, "fma": makeFloat,
	"div": makeDiv, "rem": makeRem, "rcp": makeFloat, "sqrt": makeFloat,
	"min": makeMinMax, "max": makeMinMax, "abs": makeAbs, "neg": makeNeg, "sad": makeSad,
	"dp4a": makeDot, "dp2a": makeDot, "copysign": makeCopysign, "testp": makeTestp,
	"and": makeLogic, "or": makeLogic, "xor": makeLogic, "not": makeLogic, "cnot": makeLogic, "lop3": makeLop3,
	"shl": makeShl, "shr": makeShr, "shf": makeShf, "bfe": makeBfe, "bfi": makeBfi, "bfind": makeBfind,
	"clz": makeCount, "popc": makeCount, "brev": makeCount, "szext": makeSzext, "bmsk": makeBmsk, "prmt": makePrmt,
	"setp": makeSetp, "set": makeSet, "selp": makeSelp, "slct": makeSlct,
	"mov": makeMov, "cvt": makeCvt,
}
