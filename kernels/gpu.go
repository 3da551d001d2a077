package kernels

import "math"

// What the GPU's kernels have to know of a Reducer.

// Type is the data type of the elements.
func (r *Reducer) Type() DataType { return r.t }

// A Program is how the GPU's kernels compute a reduction, see kernels/cuda.
type Program struct {
	Op string // the operation's name in kernels/cuda
	// Value is the operation's parameter: the bits of premulsum's scalar, as a float32
	// for narrow floats; for averages of integers the number of ranks (64 bits) or
	// ⌈2⁶⁴/ranks⌉ (others).
	Value    uint64
	Scales   bool // contributions are multiplied
	Finishes bool // the result has to be finished
}

// Program is how a GPU computes the reduction; false for a user's own.
func (r *Reducer) Program() (Program, bool) {
	float := types[r.t].family == floating
	switch {
	case r.kind == KindUser:
		return Program{}, false
	case r.kind == KindPreMulSum && !float:
		return Program{Op: "premulsum", Value: r.factor, Scales: true}, true
	case r.scaled() && r.t == Float64:
		return Program{Op: "premulsum", Value: math.Float64bits(r.scale), Scales: true}, true
	case r.scaled() && float:
		return Program{Op: "premulsum", Value: uint64(math.Float32bits(float32(r.scale))), Scales: true}, true
	case r.kind == KindAvg && r.ranks == 1:
		return Program{Op: "sum"}, true
	case r.kind == KindAvg:
		return Program{Op: "sum", Value: divisor(r.size, uint64(r.ranks)), Finishes: true}, true
	}
	return Program{Op: r.kind.String()}, true
}

// divisor is the kernels' parameter for a division by ranks ≥ 2, see divide.
func divisor(size int, ranks uint64) uint64 {
	switch {
	case size == 8:
		return ranks
	case ranks > math.MaxUint32:
		return 0 // the quotient is 0 too: no element has more than 32 bits
	}
	return math.MaxUint64/ranks + 1
}
