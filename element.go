package ringo

import (
	"reflect"

	"github.com/ringo-go/ringo/kernels"
)

// Element is what slices of the generic functions may hold, also as types of a program's own.
// int and uint have the size that they have on the rank, which must be the same on all. The
// 16- and 8-bit floats are F16 and BF16, and kernels.F8E4M3 and F8E5M2, which are
// uint8 underneath.
type Element interface {
	~int8 | ~uint8 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint | ~float32 | ~float64 |
		kernels.F16 | kernels.BF16
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
	case kernels.F8E5M2:
		return Float8E5M2
	}
	return typeOfKind(reflect.TypeFor[T]())
}

// typeOfKind is the DataType of a type that a program has defined, by its underlying kind.
func typeOfKind(t reflect.Type) DataType {
	switch t.Kind() {
	case reflect.Int8:
		return Int8
	case reflect.Uint8:
		return Uint8
	case reflect.Int32:
		return Int32
	case reflect.Uint32:
		return Uint32
	case reflect.Float32:
		return Float32
	case reflect.Float64:
		return Float64
	case reflect.Int, reflect.Int64:
		if t.Size() == 4 {
			return Int32
		}
		return Int64
	}
	if t.Size() == 4 {
		return Uint32
	}
	return Uint64
}
