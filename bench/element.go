package bench

import (
	"encoding/binary"
	"math"

	"github.com/ringo-go/ringo"
)

// An element is a DataType as this package understands it. It is written apart
// from package kernels on purpose: a mistake there cannot hide here.
type element struct {
	size   int  // bytes
	signed bool // of an integer
	// exp and man are the bits of exponent and mantissa, 0 for integers.
	exp, man int
}

var elements = map[ringo.DataType]element{
	ringo.Int8:       {size: 1, signed: true},
	ringo.Uint8:      {size: 1},
	ringo.Int32:      {size: 4, signed: true},
	ringo.Uint32:     {size: 4},
	ringo.Int64:      {size: 8, signed: true},
	ringo.Uint64:     {size: 8},
	ringo.Float16:    {size: 2, exp: 5, man: 10},
	ringo.BFloat16:   {size: 2, exp: 8, man: 7},
	ringo.Float32:    {size: 4, exp: 8, man: 23},
	ringo.Float64:    {size: 8, exp: 11, man: 52},
	ringo.Float8E4M3: {size: 1, exp: 4, man: 3},
	ringo.Float8E5M2: {size: 1, exp: 5, man: 2},
}

func (e element) float() bool { return e.exp > 0 }

// put stores the low bits of v as an element at dst.
func (e element) put(dst []byte, v uint64) {
	switch e.size {
	case 1:
		dst[0] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(dst, uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(dst, uint32(v))
	default:
		binary.NativeEndian.PutUint64(dst, v)
	}
}

// wrap cuts an integer to the width of the element and extends its sign.
func (e element) wrap(v uint64) uint64 {
	shift := 64 - 8*e.size
	if e.signed {
		return uint64(int64(v<<shift) >> shift)
	}
	return v << shift >> shift
}

// bits is x in the format of the element, rounded to nearest even. x must be
// finite and inside the range of the format; the data of this package is.
func (e element) bits(x float64) uint64 {
	b := math.Float64bits(x)
	if e.size == 8 {
		return b
	}
	sign := b >> 63 << (8*e.size - 1)
	if x == 0 {
		return sign
	}
	bias := 1<<(e.exp-1) - 1
	_, exp := math.Frexp(x) // |x| = f·2^exp, ½ ≤ f < 1
	biased := exp - 1 + bias
	// One unit in the last place is 2^(exponent - man); below the normal numbers
	// the exponent stays at the smallest.
	ulp := max(biased, 1) - bias - e.man
	n := uint64(math.RoundToEven(math.Ldexp(math.Abs(x), -ulp)))
	// n has man+1 bits for a normal number, whose top bit adds 1 to the exponent
	// field; a carry of the rounding lands there as well.
	return sign | (uint64(max(biased, 1)-1)<<e.man + n)
}

// round is x rounded to the format.
func (e element) round(x float64) float64 {
	if x == 0 || e.size == 8 {
		return x
	}
	_, exp := math.Frexp(x)
	bias := 1<<(e.exp-1) - 1
	ulp := max(exp-1, 1-bias) - e.man
	return math.Ldexp(math.RoundToEven(math.Ldexp(x, -ulp)), ulp)
}

// scale is a contribution multiplied before it is added: the factor is a float32 except
// for float64, and the product is rounded to the format (the contract of package
// kernels).
func (e element) scale(x, factor float64) float64 {
	if e.size == 8 {
		return x * factor
	}
	return e.round(float64(float32(x) * float32(factor)))
}
