package kernels

import (
	"fmt"
	"strings"
)

// A DataType names the type of an element. The zero DataType is no type, so that a
// caller who forgets it gets an error. The order is NCCL's.
type DataType uint8

const (
	Int8 DataType = iota + 1
	Uint8
	Int32
	Uint32
	Int64
	Uint64
	Float16
	Float32
	Float64
	BFloat16
	Float8E4M3
	Float8E5M2
	numTypes
)

// types has the name of each DataType, its name in nccl-tests, the bytes of an element,
// and the family of its arithmetic.
var types = [numTypes]struct {
	name, alias string
	size        int
	family      family
}{
	Int8:       {"int8", "", 1, signed},
	Uint8:      {"uint8", "", 1, unsigned},
	Int32:      {"int32", "", 4, signed},
	Uint32:     {"uint32", "", 4, unsigned},
	Int64:      {"int64", "", 8, signed},
	Uint64:     {"uint64", "", 8, unsigned},
	Float16:    {"float16", "half", 2, floating},
	Float32:    {"float32", "float", 4, floating},
	Float64:    {"float64", "double", 8, floating},
	BFloat16:   {"bfloat16", "", 2, floating},
	Float8E4M3: {"float8e4m3", "f8e4m3", 1, floating},
	Float8E5M2: {"float8e5m2", "f8e5m2", 1, floating},
}

type family uint8

const (
	signed family = iota
	unsigned
	floating
)

// Types lists all data types in the order of their numbers.
func Types() []DataType {
	var all []DataType
	for t := Int8; t < numTypes; t++ {
		all = append(all, t)
	}
	return all
}

// Valid reports whether t is one of the constants above.
func (t DataType) Valid() bool { return t > 0 && t < numTypes }

// NCCL is the number that nccl.h has for the type, -1 for an unknown one.
func (t DataType) NCCL() int {
	if !t.Valid() {
		return -1
	}
	return int(t - Int8)
}

// Size is the number of bytes of an element, 0 for an unknown type.
func (t DataType) Size() int {
	if !t.Valid() {
		return 0
	}
	return types[t].size
}

// String is the name in full: "int8", "bfloat16", "float8e4m3".
func (t DataType) String() string {
	if !t.Valid() {
		return fmt.Sprintf("DataType(%d)", uint8(t))
	}
	return types[t].name
}

// ParseType finds a data type by the name from String, or by nccl-tests' name: half,
// float, double, f8e4m3, f8e5m2. The error lists the names.
func ParseType(s string) (DataType, error) {
	var known []string
	for _, t := range Types() {
		if about := &types[t]; s == about.name || s == about.alias && s != "" {
			return t, nil
		}
		known = append(known, t.String())
	}
	return 0, fmt.Errorf("parse data type: %q is none of %s", s, strings.Join(known, ", "))
}
