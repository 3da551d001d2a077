package bench

import (
	"math"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/kernels"
)

// period is the number of elements after which the data of a rank repeats. It is a
// prime, so that data in a wrong chunk, block or piece is seen: chunks have composite
// lengths, and two of them start with the same data only if they are a multiple of the
// prime apart. Verification is as fast as comparing memory, because contributions and
// results are computed for one period.
const period = 65521

// data is the contributions of the ranks to one operation, and the result.
// Element j of rank r follows from a hash of (seed, r, j) alone, so every rank
// can compute the contributions of all others.
//
// Values are chosen so that ⊕ never rounds where the type allows it, and so
// every order of combination has the same bits and results are compared
// exactly:
//
//   - moved data is random bits, NaN patterns and all;
//   - integers are random and wrap (prod: odd, and/or: one bit cleared/set, so
//     that the result stays sensitive to every rank);
//   - sums of floats are of whole numbers whose magnitudes add up to at most
//     2^(mantissa bits+1); in tiny formats on many ranks only some of the ranks,
//     different ones for each element, give anything but 0;
//   - products of floats are of ±½, ±1, ±2, one of them times 1.5;
//   - avg and premulsum are scaled before they are added: contributions are
//     multiples of a unit whose scaled value is exact. Where there is no such
//     unit (1/41 in float32) only one rank gives a number, and the result is that
//     number scaled and rounded, as documented in package kernels.
type data struct {
	el     element
	op     ringo.RedOp
	moved  bool // no arithmetic
	ranks  int
	seed   uint64
	length int // elements that are used, at most period

	// For sums of floats: contributions are unit·k with |k| ≤ most, of active
	// ranks, times factor.
	unit, factor float64
	most         int64
	active       int
}

// newData prepares data of n ranks whose buffers hold at most length elements.
func newData(t ringo.DataType, op ringo.RedOp, moved bool, n, length int, seed uint64) *data {
	d := &data{el: elements[t], op: op, moved: moved, ranks: n, seed: seed, length: min(length, period), unit: 1,
		factor: 1}
	if moved {
		d.el = element{size: d.el.size}
		return d
	}
	if !d.el.float() {
		return d
	}
	limit := int64(1) << min(d.el.man+1, 30)
	switch op.Kind {
	case kernels.KindAvg:
		d.scaled(float64(n), 1/float64(n), min(limit, 4096))
	case kernels.KindPreMulSum:
		d.scaled(1, op.Scale, min(limit, 4096))
	case kernels.KindProd:
		// One binary place for each active rank, up or down.
		d.active = min(n, 1<<(d.el.exp-1)-2)
	case kernels.KindMax, kernels.KindMin:
		d.active, d.most = n, limit
	default:
		d.active = int(min(int64(n), limit))
		d.most = limit / int64(d.active)
	}
	return d
}

// scaled chooses contributions for an operator that multiplies by factor first.
func (d *data) scaled(unit, factor float64, limit int64) {
	d.unit, d.factor = unit, factor
	d.active = int(min(int64(d.ranks), limit))
	d.most = limit / int64(d.active)
	step := d.el.scale(unit, factor)
	exact := true
	for k := int64(1); k <= limit && exact; k++ {
		x, y := unit*float64(k), step*float64(k)
		given := k > d.most || d.el.round(x) == x && d.el.scale(x, factor) == y
		exact = given && d.el.round(y) == y && math.FMA(step, float64(k), -y) == 0
	}
	if !exact {
		d.unit, d.active, d.most = 1, 1, limit
	}
}

// hash mixes its arguments into 64 evenly distributed bits.
func hash(seed uint64, rank, j int) uint64 {
	h := seed ^ uint64(rank+1)*0x9e3779b97f4a7c15 ^ uint64(j+1)*0xd1b54a32d192ed03
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	h = (h ^ h>>29) * 0xff51afd7ed558ccd
	return h ^ h>>32
}

// integer is element j of rank for moved data and integer types.
func (d *data) integer(rank, j int) uint64 {
	h := hash(d.seed, rank, j)
	if d.moved {
		return h
	}
	switch d.op.Kind {
	case kernels.KindProd:
		return h | 1
	case kernels.KindBitAnd:
		return ^(1 << (h % 64 % uint64(8*d.el.size)))
	case kernels.KindBitOr:
		return 1 << (h % 64 % uint64(8*d.el.size))
	}
	return h
}

// real is element j of rank for float types.
func (d *data) real(rank, j int) float64 {
	idle := d.active < d.ranks && (rank+j)%d.ranks >= d.active
	h := hash(d.seed, rank, j)
	if d.op.Kind == kernels.KindProd {
		x := 1.0
		if !idle {
			x = [...]float64{0.5, 1, 2, 1, -0.5, -1, -2, 1}[h>>61]
		}
		if j/3%d.ranks == rank {
			x *= 1.5
		}
		return x
	}
	if idle {
		return 0
	}
	k := int64((h>>32)*uint64(2*d.most+1)>>32) - d.most
	return d.unit * float64(k)
}

// contribution writes one period (or less) of rank's contribution, from element 0.
func (d *data) contribution(dst []byte, rank int) {
	size := d.el.size
	for j := range len(dst) / size {
		if d.el.float() {
			d.el.put(dst[j*size:], d.el.bits(d.real(rank, j)))
		} else {
			d.el.put(dst[j*size:], d.integer(rank, j))
		}
	}
}

// result writes one period (or less) of the result, from element 0.
func (d *data) result(dst []byte) {
	size := d.el.size
	for j := range len(dst) / size {
		if d.el.float() {
			d.el.put(dst[j*size:], d.el.bits(d.foldReal(j)))
		} else {
			d.el.put(dst[j*size:], d.foldInteger(j))
		}
	}
}

func (d *data) foldReal(j int) float64 {
	acc := d.el.scaleBy(d.real(0, j), d.factor)
	for r := 1; r < d.ranks; r++ {
		x := d.el.scaleBy(d.real(r, j), d.factor)
		switch d.op.Kind {
		case kernels.KindProd:
			acc *= x
		case kernels.KindMax:
			acc = math.Max(acc, x)
		case kernels.KindMin:
			acc = math.Min(acc, x)
		default:
			acc += x
		}
	}
	return acc
}

// scaleBy is scale, and x itself for the factor 1.
func (e element) scaleBy(x, factor float64) float64 {
	if factor == 1 {
		return x
	}
	return e.scale(x, factor)
}

func (d *data) foldInteger(j int) uint64 {
	scale := uint64(1)
	if d.op.Kind == kernels.KindPreMulSum {
		if scale = d.op.Int; scale == 0 {
			scale = uint64(int64(d.op.Scale))
		}
	}
	acc := d.el.wrap(d.integer(0, j) * scale)
	for r := 1; r < d.ranks; r++ {
		v := d.el.wrap(d.integer(r, j) * scale)
		less := v < acc
		if d.el.signed {
			less = int64(v) < int64(acc)
		}
		switch d.op.Kind {
		case kernels.KindProd:
			acc *= v
		case kernels.KindMax:
			if !less {
				acc = v
			}
		case kernels.KindMin:
			if less {
				acc = v
			}
		case kernels.KindBitAnd:
			acc &= v
		case kernels.KindBitOr:
			acc |= v
		case kernels.KindBitXor:
			acc ^= v
		default:
			acc += v
		}
	}
	acc = d.el.wrap(acc)
	if d.op.Kind == kernels.KindAvg {
		if d.el.signed {
			return uint64(int64(acc) / int64(d.ranks))
		}
		return acc / uint64(d.ranks)
	}
	return acc
}
