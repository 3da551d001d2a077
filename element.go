package ringo

import "github.com/ringo-go/ringo/kernels"

// Element is what slices of the generic functions may hold. The 16- and 8-bit
// floats are kernels.F16, BF16, F8E4M3 and F8E5M2.
type Element interface {
	int8 | uint8 | int32 | uint32 | int64 | uint64 | float32 | float64 |
		kernels.F16 | kernels.BF16 | kernels.F8E4M3 | kernels.F8E5M2
}

// TypeOf is the DataType of a slice's elements.
func TypeOf[T Element]() DataType {
	var zero T
	switch any(zero).(type) {
	case int8:
		return Int8
	case uint8:
		return Uint8
	case int32:
		return Int32
	case uint32:
		return Uint32
	case int64:
		return Int64
	case uint64:
		return Uint64
	case float32:
		return Float32
	case float64:
		return Float64
	case kernels.F16:
		return Float16
	case kernels.BF16:
		return BFloat16
	case kernels.F8E4M3:
		return Float8E4M3
	}
	return Float8E5M2
}
