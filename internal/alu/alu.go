// Package alu is what PTX instructions compute: integers, float32, float64,
// float16, bfloat16, 8-bit floats, conversions and comparisons, with PTX's
// rounding and NaN rules, bit for bit as an H100 computes them. Control flow,
// memory and what threads exchange are not here; see packages simt and weakmem.
//
// testdata holds results recorded on a real GPU; the tests compare.
package alu

import "github.com/ringo-go/ringo/internal/ptx"

// Lanes holds one register of the 32 threads of a warp. Values narrower than
// 64 bits are in the low bits, the rest is zero. A predicate is 0 or 1.
type Lanes [32]uint64

// A Func computes an instruction for the lanes set in mask; other lanes of d
// keep their values. d may be one of the sources. src are the operands after the destinations,
// immediates and special registers already as Lanes.
type Func func(mask uint32, d, d2 *Lanes, src []*Lanes)

// An Op is an instruction ready to run.
type Op struct {
	Run  Func
	Dsts int // 1, or 2 for p|q pairs; a vector on either side counts as its elements (mov.b64 {a,b}, c)
	Srcs int
}
