package alu

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// all is the mask of a warp without divergence.
const all = 1<<32 - 1

// The loops below make an Op whose result has a type from a function of one
// lane, which may leave anything above the type's width. The indirect call costs
// one or two nanoseconds a lane; it is why there are so few loops.

func unary(t ptx.Type, f func(a uint64) uint64) Op {
	m := ones(t.Bits())
	return Op{Dsts: 1, Srcs: 1, Run: func(mask uint32, dst, src []*Lanes) {
		d, a := dst[0], src[0]
		if mask == all {
			for i := range d {
				d[i] = f(a[i]) & m
			}
			return
		}
		for ; mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros32(mask)
			d[i] = f(a[i]) & m
		}
	}}
}

func binary(t ptx.Type, f func(a, b uint64) uint64) Op {
	m := ones(t.Bits())
	return Op{Dsts: 1, Srcs: 2, Run: func(mask uint32, dst, src []*Lanes) {
		d, a, b := dst[0], src[0], src[1]
		if mask == all {
			for i := range d {
				d[i] = f(a[i], b[i]) & m
			}
			return
		}
		for ; mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros32(mask)
			d[i] = f(a[i], b[i]) & m
		}
	}}
}

// predicate is binary for a result that is a predicate.
func predicate(f func(a, b uint64) bool) Op {
	return Op{Dsts: 1, Srcs: 2, Run: func(mask uint32, dst, src []*Lanes) {
		d, a, b := dst[0], src[0], src[1]
		if mask == all {
			for i := range d {
				d[i] = truth(f(a[i], b[i]))
			}
			return
		}
		for ; mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros32(mask)
			d[i] = truth(f(a[i], b[i]))
		}
	}}
}

func ternary(t ptx.Type, f func(a, b, c uint64) uint64) Op {
	m := ones(t.Bits())
	return Op{Dsts: 1, Srcs: 3, Run: func(mask uint32, dst, src []*Lanes) {
		d, a, b, c := dst[0], src[0], src[1], src[2]
		if mask == all {
			for i := range d {
				d[i] = f(a[i], b[i], c[i]) & m
			}
			return
		}
		for ; mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros32(mask)
			d[i] = f(a[i], b[i], c[i]) & m
		}
	}}
}

func quaternary(t ptx.Type, f func(a, b, c, d uint64) uint64) Op {
	m := ones(t.Bits())
	return Op{Dsts: 1, Srcs: 4, Run: func(mask uint32, dst, src []*Lanes) {
		for ; mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros32(mask)
			dst[0][i] = f(src[0][i], src[1][i], src[2][i], src[3][i]) & m
		}
	}}
}

// pair makes an Op of two results, the second a predicate or carry.
func pair(t ptx.Type, srcs int, f func(a, b, c, d uint64) (x, y uint64)) Op {
	m := ones(t.Bits())
	return Op{Dsts: 2, Srcs: srcs, Run: func(mask uint32, dst, src []*Lanes) {
		var in [4]*Lanes
		for k := range in {
			in[k] = &zeros
		}
		copy(in[:], src[:srcs])
		for ; mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros32(mask)
			x, y := f(in[0][i], in[1][i], in[2][i], in[3][i])
			dst[0][i], dst[1][i] = x&m, y
		}
	}}
}

// zeros stands for sources that an instruction lacks. Nobody writes it.
var zeros Lanes

// ones is a number whose low n bits are set.
func ones(n int) uint64 { return 1<<n - 1 }

// truth is a predicate.
func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// signed is the number that the low n bits of a are.
func signed(a uint64, n int) int64 { return int64(a<<(64-n)) >> (64 - n) }

// Extend sign-extends the lanes of d that are set in mask from one width in
// bits to another: what cvt does to a signed result in a wider register.
func Extend(mask uint32, d *Lanes, from, to int) {
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros32(mask)
		d[i] = uint64(signed(d[i], from)) & ones(to)
	}
}
