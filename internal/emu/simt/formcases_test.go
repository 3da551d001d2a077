package simt_test

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/kernels"
)

// A layout is the bits of a floating-point format.
type layout struct{ exp, man int }

var layouts = map[ptx.Type]layout{ptx.F16: {5, 10}, ptx.BF16: {8, 7}, ptx.F32: {8, 23}, ptx.F64: {11, 52}}

// packed are the elements of types of several.
var packed = map[ptx.Type]ptx.Type{
	ptx.F16x2: ptx.F16, ptx.BF16x2: ptx.BF16, ptx.U16x2: ptx.U16, ptx.S16x2: ptx.S16,
	ptx.E4M3x2: ptx.B8, ptx.E5M2x2: ptx.B8,
}

// cases are the operands of a form, a word a source, row after row. They are the same in every
// run: the golden files hold the results only.
func cases(f *form) [][]uint64 {
	h := fnv.New64a()
	h.Write([]byte(f.id()))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	k := len(f.src)
	lists := make([][]uint64, k)
	random := 400
	for i, o := range f.src {
		lists[i] = core(o)
		switch {
		case k == 1:
			lists[i] = edges(f, o)
		case k >= 3:
			lists[i] = lists[i][:min(9, len(lists[i]))]
		}
	}
	if strings.HasPrefix(f.name, "set") || k == 1 {
		random = 200
	}
	rows := [][]uint64{{}}
	for _, list := range lists {
		var longer [][]uint64
		for _, row := range rows {
			for _, v := range list {
				longer = append(longer, append(slices.Clone(row), v))
			}
		}
		rows = longer
	}
	for range random {
		row := make([]uint64, k)
		for i, o := range f.src {
			row[i] = randomOf(f, o, r)
		}
		rows = append(rows, row)
	}
	return rows
}

var (
	shifts    = []uint64{0, 1, 31, 32, 33, 255, 8, 1 << 31, 7, 15, 16, 17, 63, 64, 65, 256, 257, 1<<32 - 1}
	selectors = []uint64{0x3210, 0x0123, 0x7654, 0xba98, 0xfedc, 0x4, 0x19af3, 0xffff, 0, 1, 2, 3, 0x8c04}
)

// core are the most telling values of an operand, the first of them first.
func core(o operand) []uint64 {
	switch o.values {
	case "shift":
		return shifts
	case "selector":
		return selectors
	}
	if h, ok := packed[o.typ]; ok {
		low := core(operand{typ: h})
		both := make([]uint64, len(low))
		for i, v := range low {
			both[i] = low[(i*7+3)%len(low)]<<h.Bits() | v
		}
		return both
	}
	w := o.typ.Bits()
	if o.typ == ptx.Pred {
		return []uint64{0, 1}
	}
	if l, ok := layouts[o.typ]; ok {
		sign, inf, one := uint64(1)<<(w-1), uint64(1<<l.exp-1)<<l.man, uint64(1<<(l.exp-1)-1)<<l.man
		quiet := uint64(1) << (l.man - 1)
		payload := func(b uint64) uint64 { return b * 0x0101010101010101 & (quiet - 1) }
		low := uint64(1<<(l.exp-2) - 1) // half the exponent of one
		return []uint64{
			// these 9 in triples
			0, sign | one, inf, inf | quiet | payload(0x5a), sign | inf | payload(0x3c), sign | inf, inf - 1, sign,
			sign | inf | quiet | payload(0x2d),
			one, inf | 6, 1, sign | (1<<l.man - 1), 1 << l.man, one + 1,
			sign | (inf - 1), one + quiet, sign | 1<<l.man, 1<<l.man - 1,
			low<<l.man | (1<<l.man - 1), (low + 1) << l.man, // their product lies just below the smallest normal number
			one + 1<<l.man, low<<l.man + 1,
		}
	}
	top := uint64(1) << (w - 1)
	m := top<<1 - 1
	return []uint64{
		0, 1, m, top, top - 1, 0x8421 & m, m - 1, 0x5555555555555555 & m, 2, // these 9 in triples
		top + 1, 3, 7, 10, m - 6, top >> 1, (top >> 1) * 3, 0xff, 1<<(w/2) - 1, 1 << (w / 2) & m,
	}
}

// edges are the values for an instruction with one source: core, and for a
// conversion all values at which its result changes, in any type it may go to.
func edges(f *form, o operand) []uint64 {
	list := core(o)
	if half, ok := packed[o.typ]; ok && half == ptx.B8 {
		list = nil
		for v := range uint64(256) {
			list = append(list, (v*67+1)&255<<8|v)
		}
	}
	if f.name[:3] != "cvt" || layouts[o.typ].exp == 0 {
		return list
	}
	l := layouts[o.typ]
	w := o.typ.Bits()
	inf, sign := uint64(1<<l.exp-1)<<l.man, uint64(1)<<(w-1)
	for _, v := range turns() {
		b := bitsOf(o.typ, v)
		for _, b := range []uint64{b - 1, b, b + 1} {
			if b < inf {
				list = append(list, b, sign|b)
			}
		}
	}
	for i, v := range list { // the same once, without disturbing the order
		if slices.Index(list, v) < i {
			list[i] = list[0]
		}
	}
	return slices.Compact(list)
}

// turns are the positive numbers at which conversions change their result.
func turns() []float64 {
	list := []float64{0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3.5, 1e-30, 100.5, 255.5}
	for _, k := range []int{7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64} {
		p := math.Ldexp(1, k)
		list = append(list, p-1, p-0.5, p, p+0.5, p+1)
	}
	for _, t := range []struct {
		man, emin int
		max       float64
	}{{10, -14, 65504}, {7, -126, 0x1.fep127}, {3, -6, 448}, {2, -14, 57344}, {10, -126, 0x1.ffcp127},
		{23, -126, math.MaxFloat32}} {
		ulp := math.Ldexp(1, -t.man)
		least := math.Ldexp(ulp, t.emin)
		top := math.Ldexp(ulp, math.Ilogb(t.max))
		list = append(list, t.max, t.max+top/2, t.max+top, least, least/2, least*1.5, least*2.5,
			math.Ldexp(1, t.emin), math.Ldexp(1, t.emin)-least/2, math.Ldexp(1, t.emin)-least, 1+ulp/2, 1+ulp, 1+ulp*1.5,
			1-ulp/4)
	}
	return list
}

// bitsOf is a number of a floating-point type.
func bitsOf(t ptx.Type, v float64) uint64 {
	switch t {
	case ptx.F16:
		return uint64(kernels.NewF16(float32(v)))
	case ptx.BF16:
		return uint64(kernels.NewBF16(float32(v)))
	case ptx.F32:
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// randomOf is a value of an operand that often is near something interesting.
func randomOf(f *form, o operand, r *rand.Rand) uint64 {
	if h, ok := packed[o.typ]; ok {
		one := operand{typ: h}
		return randomOf(f, one, r)<<h.Bits() | randomOf(f, one, r)
	}
	w := o.typ.Bits()
	m := uint64(1)<<(w-1)<<1 - 1
	switch o.values {
	case "shift":
		return r.Uint64N(70)
	case "selector":
		return r.Uint64() & 0xffff
	}
	list := core(o)
	if r.IntN(5) == 0 {
		return list[r.IntN(len(list))]
	}
	l, ok := layouts[o.typ]
	if !ok {
		v := r.Uint64() & m
		switch r.IntN(4) {
		case 0:
			v >>= r.IntN(w)
		case 1: // halfway between two floats, or just beside
			digits := []int{3, 8, 11, 24, 53}[r.IntN(5)]
			v = r.Uint64()>>(64-digits)<<12 | 1<<11 + r.Uint64N(3) - 1
			v = v << r.IntN(w) & m
		case 2:
			v = -(v >> r.IntN(w)) & m
		}
		return v
	}
	bias := 1<<(l.exp-1) - 1
	exp, man := r.IntN(1<<l.exp), r.Uint64()&(1<<l.man-1)
	switch r.IntN(6) {
	case 0: // near one
		exp = bias + r.IntN(7) - 3
	case 1: // few digits: exact results and ties
		exp, man = bias+r.IntN(2*l.man)-l.man, man>>(l.man-3)<<(l.man-3)
	case 2: // denormal, or nearly
		exp = r.IntN(l.man + 3)
	case 3: // products are nearly denormal
		exp = bias/2 + r.IntN(3) - 1
		man |= (r.Uint64N(2) - 1) & (1<<l.man - 1)
	case 4: // large
		exp = 1<<l.exp - 2 - r.IntN(3)
	}
	return r.Uint64N(2)<<(w-1) | uint64(exp)<<l.man | man
}
