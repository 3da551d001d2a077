package dlpack

import (
	"reflect"

	"github.com/ringo-go/ringo/kernels"
)

// A Type is the type of a tensor's elements, laid out as in C.
type Type struct {
	Code  Code
	Bits  uint8
	Lanes uint16 // elements of a vector; 1 here always
}

// A Code is a kind of element.
type Code uint8

// The codes of elements that are taken and lent.
const (
	Int         Code = 0
	Uint        Code = 1
	Float       Code = 2
	BFloat      Code = 4
	Complex     Code = 5
	Bool        Code = 6
	Float8E4M3  Code = 10 // the variant with NaN and without infinities, which NCCL uses too
	Float8E5M2  Code = 12
	codesOfBits      = 13
)

// sizes are the bits that elements of a code may have.
var sizes = [codesOfBits][]uint8{
	Int: {8, 16, 32, 64}, Uint: {8, 16, 32, 64}, Float: {16, 32, 64}, BFloat: {16}, Complex: {64, 128}, Bool: {8},
	Float8E4M3: {8}, Float8E5M2: {8},
}

// size is the bytes of an element, 0 for a type that is not known here.
func (t Type) size() int {
	if int(t.Code) >= len(sizes) || t.Lanes != 1 {
		return 0
	}
	for _, bits := range sizes[t.Code] {
		if bits == t.Bits {
			return int(bits) / 8
		}
	}
	return 0
}

// ofData is the Type of each data type of collectives.
var ofData = map[kernels.DataType]Type{
	kernels.Int8: {Int, 8, 1}, kernels.Uint8: {Uint, 8, 1}, kernels.Int32: {Int, 32, 1}, kernels.Uint32: {Uint, 32, 1},
	kernels.Int64:  {Int, 64, 1},
	kernels.Uint64: {Uint, 64, 1}, kernels.Float16: {Float, 16, 1}, kernels.Float32: {Float, 32, 1},
	kernels.Float64:  {Float, 64, 1},
	kernels.BFloat16: {BFloat, 16, 1}, kernels.Float8E4M3: {Float8E4M3, 8, 1}, kernels.Float8E5M2: {Float8E5M2, 8, 1},
}

// Of is the Type of a data type of collectives; the zero Type for an unknown one.
func Of(t kernels.DataType) Type { return ofData[t] }

// DataType is the data type of collectives for a Type; false if they have none.
func (t Type) DataType() (kernels.DataType, bool) {
	for d, of := range ofData {
		if of == t {
			return d, true
		}
	}
	return 0, false
}

// kinds are the codes of Go's types.
var kinds = map[reflect.Kind]Code{
	reflect.Int8: Int, reflect.Int16: Int, reflect.Int32: Int, reflect.Int64: Int, reflect.Int: Int,
	reflect.Uint8: Uint, reflect.Uint16: Uint, reflect.Uint32: Uint, reflect.Uint64: Uint, reflect.Uint: Uint,
	reflect.Float32: Float, reflect.Float64: Float, reflect.Complex64: Complex, reflect.Complex128: Complex,
	reflect.Bool: Bool,
}

// For is the Type of Go's type T: an integer, a float, a complex number or bool. The error is an *Error.
func For[T any]() (Type, error) {
	t := reflect.TypeFor[T]()
	code, ok := kinds[t.Kind()]
	if !ok {
		return Type{}, wrong("dtype", "Go's %v is none that tensors have", t)
	}
	return Type{code, uint8(8 * t.Size()), 1}, nil
}

// fits refuses a Go type T that cannot stand for elements of a Type. T is the same type or, for 16-bit and 8-bit
// floats, which Go lacks, one of as many bits.
func fits[T any](t Type) error {
	own, err := For[T]()
	switch {
	case err != nil:
		return err
	case own == t:
		return nil
	case own.Code == Uint && own.Bits == t.Bits &&
		(t.Code == BFloat || t.Code >= Float8E4M3 || t.Code == Float && t.Bits == 16):
		return nil
	}
	return wrong("dtype", "elements of code %d and %d bits are no %v", t.Code, t.Bits, reflect.TypeFor[T]())
}
