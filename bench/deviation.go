package bench

import (
	"encoding/binary"
	"math"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/kernels"
)

// A Deviation is how far the results of a reduction of floats are from the exact
// ones, over the elements of all ranks, in units in the last place (ulp) of the
// exact result: half of one is the best that a format allows.
type Deviation struct {
	Max float64 `json:"max_ulp"`
	RMS float64 `json:"rms_ulp"` // root of the mean square
}

// deviates reports whether a series has results that are rounded in ways worth
// comparing: sums of floats, scaled or not.
func (s *series) deviates() bool {
	switch s.op.Kind {
	case kernels.KindSum, kernels.KindAvg, kernels.KindPreMulSum:
		return s.Reduces() && elements[s.typ].float()
	}
	return false
}

// A double is a number of twice the precision of a float64: hi + lo.
type double struct{ hi, lo float64 }

// plus is d + x, exact but for the last of some 100 bits.
func (d double) plus(x float64) double {
	sum := d.hi + x
	y := sum - d.hi
	lo := d.lo + ((d.hi - (sum - y)) + (x - y))
	hi := sum + lo
	return double{hi, lo - (hi - sum)}
}

// plusProduct adds x·y.
func (d double) plusProduct(x, y float64) double {
	p := x * y
	return d.plus(p).plus(math.FMA(x, y, -p))
}

// over is d/n.
func (d double) over(n float64) double {
	q := d.hi / n
	return double{q, (math.FMA(-q, n, d.hi) + d.lo) / n}
}

// random is element j of a rank's contribution: a number from 0 to 1, rounded to the
// format. With numbers of both signs the result would depend on cancellation.
func (e element) random(seed uint64, rank, j int) float64 {
	return e.round(float64(hash(seed, rank, j)>>11) * 0x1p-53)
}

// sum is the exact result for element j of n ranks.
func (e element) sum(op ringo.RedOp, seed uint64, n, j int) double {
	scale := 1.0
	if op.Kind == kernels.KindPreMulSum {
		if scale = op.Scale; e.size < 8 {
			scale = float64(float32(scale))
		}
	}
	var d double
	for r := range n {
		d = d.plusProduct(e.random(seed, r, j), scale)
	}
	if op.Kind == kernels.KindAvg {
		d = d.over(float64(n))
	}
	return d
}

// value is the element at b.
func (e element) value(b []byte) float64 {
	var v uint64
	switch e.size {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(binary.NativeEndian.Uint16(b))
	case 4:
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
	default:
		return math.Float64frombits(binary.NativeEndian.Uint64(b))
	}
	field, bias := int(v>>e.man)&(1<<e.exp-1), 1<<(e.exp-1)-1
	n := v & (1<<e.man - 1)
	if field > 0 {
		n |= 1 << e.man
	}
	x := math.Ldexp(float64(n), max(field, 1)-bias-e.man)
	if field == 1<<e.exp-1 && (e.exp != 4 || v&7 == 7) { // E4M3 has numbers there
		x = math.Inf(1) // or NaN
	}
	if v>>(8*e.size-1) != 0 {
		x = -x
	}
	return x
}

// ulp is one unit in the last place of x in the format.
func (e element) ulp(x float64) float64 {
	_, exp := math.Frexp(x)
	return math.Ldexp(1, max(exp-1, 2-1<<(e.exp-1))-e.man)
}

// A spread sums up errors.
type spread struct {
	max, squares float64
	count        int
}

func (s *spread) add(got float64, want double, ulp float64) {
	err := math.Abs(got-want.hi-want.lo) / ulp
	s.max = max(s.max, err)
	s.squares += err * err
	s.count++
}

// deviation carries an operation out once on random data and compares with the
// exact results.
func (w *worker) deviation(s *series, op *operation) (*Deviation, error) {
	rank, n := w.comm.Rank(), w.comm.Size()
	e, size := elements[s.typ], s.typ.Size()
	w.seed++
	seed := hash(w.seed, n, op.count)
	give, get := op.pairs[0].in, op.pairs[0].out
	for j := range min(period, len(give)/size) {
		e.put(give[j*size:], e.bits(e.random(seed, rank, j)))
	}
	for at := period * size; at < len(give); at *= 2 {
		copy(give[at:], give[:at])
	}
	clear(get)
	in, out := w.lengths(op)
	if err := w.once(op, in, out); err != nil {
		return nil, err
	}
	var all spread
	for i, p := range s.result(rank, s.root, n, op.count) {
		block := get[i*op.count*size:][:op.count*size]
		for j := range min(period, op.count) {
			want := e.sum(s.op, seed, n, (p.from+j)%period)
			ulp := e.ulp(want.hi)
			for at := j * size; at < len(block); at += period * size {
				all.add(e.value(block[at:]), want, ulp)
			}
		}
	}
	return w.ctl.deviation(&all)
}

// deviation is the Deviation over all ranks, of which each gives its spread.
func (c *control) deviation(s *spread) (*Deviation, error) {
	squares, err := c.sum(s.squares)
	if err != nil {
		return nil, err
	}
	count, err := c.sum(float64(s.count))
	if err != nil {
		return nil, err
	}
	most := []float64{s.max}
	if err := ringo.AllReduce(c.comm, most, ringo.Max); err != nil {
		return nil, err
	}
	return &Deviation{Max: most[0], RMS: math.Sqrt(squares / max(count, 1))}, nil
}
