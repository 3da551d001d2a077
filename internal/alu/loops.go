package alu

import "math/bits"

// all is the mask of a warp without divergence.
const all = 1<<32 - 1

// The four loops below make a Func of a function of one lane. An indirect call
// costs about a nanosecond a lane, which is why there are no loops by operation.

func unary(f func(a uint64) uint64) Op {
	return Op{Dsts: 1, Srcs: 1, Run: func(mask uint32, dst, src []*Lanes) {
		d, a := dst[0], src[0]
		if mask == all {
			for i := range d {
				d[i] = f(a[i])
			}
			return
		}
		for ; mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros32(mask)
			d[i] = f(a[i])
		}
	}}
}

func binary(f func(a, b uint64) uint64) Op {
	return Op{Dsts: 1, Srcs: 2, Run: func(mask uint32, dst, src []*Lanes) {
		d, a, b := dst[0], src[0], src[1]
		if mask == all {
			for i := range d {
				d[i] = f(a[i], b[i])
			}
			return
		}
		for ; mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros32(mask)
			d[i] = f(a[i], b[i])
		}
	}}
}

func ternary(f func(a, b, c uint64) uint64) Op {
	return Op{Dsts: 1, Srcs: 3, Run: func(mask uint32, dst, src []*Lanes) {
		d, a, b, c := dst[0], src[0], src[1], src[2]
		if mask == all {
			for i := range d {
				d[i] = f(a[i], b[i], c[i])
			}
			return
		}
		for ; mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros32(mask)
			d[i] = f(a[i], b[i], c[i])
		}
	}}
}

// general is for any number of operands: f gets the sources of a lane and fills
// in its results.
func general(dsts, srcs int, f func(d, s []uint64)) Op {
	return Op{Dsts: dsts, Srcs: srcs, Run: func(mask uint32, dst, src []*Lanes) {
		var d, s [8]uint64
		for ; mask != 0; mask &= mask - 1 {
			i := bits.TrailingZeros32(mask)
			for k := range srcs {
				s[k] = src[k][i]
			}
			f(d[:dsts], s[:srcs])
			for k := range dsts {
				dst[k][i] = d[k]
			}
		}
	}}
}

// Extend sign-extends the lanes of d that are set in mask from one width in
// bits to another: what cvt does to a signed result in a wider register.
func Extend(mask uint32, d *Lanes, from, to int) {
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros32(mask)
		d[i] = uint64(int64(d[i]<<(64-from))>>(64-from)) << (64 - to) >> (64 - to)
	}
}
