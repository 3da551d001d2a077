package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ringo-go/ringo/mem"
)

// A Kind names a family of reductions. The numbers up to KindAvg are NCCL's.
type Kind uint8

const (
	KindSum Kind = iota
	KindProd
	KindMax
	KindMin
	KindAvg
	KindBitAnd
	KindBitOr
	KindBitXor
	KindPreMulSum
	KindUser
	numKinds
)

var kindNames = [numKinds]string{"sum", "prod", "max", "min", "avg", "bitand", "bitor", "bitxor", "premulsum", "user"}

func (k Kind) String() string {
	if k >= numKinds {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// A RedOp is a reduction: an operation that makes one element of two. Except for a
// user's own, all are commutative bit for bit. The zero RedOp is Sum.
type RedOp struct {
	Kind Kind

	// Scale is the scalar of PreMulSum. For integer types it has to be an
	// integer; Int, when not zero, replaces it and is exact for 64 bits.
	// Only the scalar's low bits count: it wraps like any integer here.
	Scale float64
	Int   uint64

	// At, when not nil, is where the scalar of PreMulSum is instead: one element.
	// NewReducer reads it from host memory. A scalar in a GPU's memory is not part of
	// the Reducer: kernels get its address, see device.Args.Scalar.
	At *mem.Region

	// Name, Unit and Func are a user's own reduction. Func sets dst = dst ⊕ src,
	// element by element. It is called with parts of the data: dst and src have
	// the same length, a multiple of Unit bytes, do not overlap and may start at
	// any byte. Func must neither keep the slices nor write to src. The goroutine
	// that carries out the operation calls Func, so ranks of one process call it at
	// the same time. ⊕ has to be associative and commutative, up to the rounding
	// that the caller accepts.
	//
	// Unit is the size in bytes of Func's element, such as 24 for structs that are
	// passed as Uint8: a multiple of the data type's Size up to MaxUnit, or 0 for that Size.
	Name string
	Unit int
	Func func(t DataType, dst, src []byte)
}

// The reductions that need no parameter.
var (
	Sum    = RedOp{Kind: KindSum}
	Prod   = RedOp{Kind: KindProd}
	Max    = RedOp{Kind: KindMax}
	Min    = RedOp{Kind: KindMin}
	Avg    = RedOp{Kind: KindAvg}    // sum divided by the number of ranks
	BitAnd = RedOp{Kind: KindBitAnd} // integers only, like BitOr and BitXor
	BitOr  = RedOp{Kind: KindBitOr}
	BitXor = RedOp{Kind: KindBitXor}
)

// PreMulSum multiplies each contribution by scale, then sums.
func PreMulSum(scale float64) RedOp { return RedOp{Kind: KindPreMulSum, Scale: scale} }

// PreMulSumInt is PreMulSum with an integer scalar that is exact for 64-bit
// integers too; for uint64 pass int64(scalar).
func PreMulSumInt(scale int64) RedOp {
	return RedOp{Kind: KindPreMulSum, Scale: float64(scale), Int: uint64(scale)}
}

// PreMulSumAt is PreMulSum with a scalar that is an element in memory, of the host
// or of the rank's GPU.
func PreMulSumAt(scale mem.Region) RedOp { return RedOp{Kind: KindPreMulSum, At: &scale} }

// scalar is op with the scalar from At in Scale or Int, or the reason why the scalar is not valid. For a scalar in a
// GPU's memory, op has 1 instead.
func (op RedOp) scalar(t DataType) (_ RedOp, reason string) {
	at := op.At
	size := t.Size()
	switch {
	case op.Kind != KindPreMulSum || at == nil:
		return op, ""
	case at.IsNil():
		return op, "the scalar's memory is nil"
	case at.Len() != size:
		return op, fmt.Sprintf("the scalar's memory has %d bytes: give it one element, of %d", at.Len(), size)
	case at.Ptr()%uintptr(size) != 0:
		return op, fmt.Sprintf("the scalar's address %#x is no multiple of the element's %d bytes: align it", at.Ptr(), size)
	}
	op.At, op.Scale, op.Int = nil, 1, 0
	if !at.IsHost() {
		return op, ""
	}
	b := at.Bytes()
	switch t {
	case Int8:
		op.Int = uint64(int8(b[0]))
	case Uint8:
		op.Int = uint64(b[0])
	case Int32:
		op.Int = uint64(int32(binary.NativeEndian.Uint32(b)))
	case Uint32:
		op.Int = uint64(binary.NativeEndian.Uint32(b))
	case Int64, Uint64:
		op.Int = binary.NativeEndian.Uint64(b)
	case Float16:
		op.Scale = float64(F16(binary.NativeEndian.Uint16(b)).Float32())
	case BFloat16:
		op.Scale = float64(BF16(binary.NativeEndian.Uint16(b)).Float32())
	case Float32:
		op.Scale = float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
	case Float64:
		op.Scale = math.Float64frombits(binary.NativeEndian.Uint64(b))
	case Float8E4M3:
		op.Scale = float64(F8E4M3(b[0]).Float32())
	case Float8E5M2:
		op.Scale = float64(F8E5M2(b[0]).Float32())
	}
	if t < Float16 {
		op.Scale = 0
	}
	return op, ""
}

// MaxUnit is the largest RedOp.Unit.
const MaxUnit = 4096

// UserOp is a reduction of the caller's own, of elements of the call's type; see
// RedOp.Func. The name is for messages: ranks do not compare it.
func UserOp(name string, f func(t DataType, dst, src []byte)) RedOp {
	return RedOp{Kind: KindUser, Name: name, Func: f}
}

// UserOpOf is UserOp for elements of unit bytes: f always gets whole elements. unit is
// as RedOp.Unit.
func UserOpOf(name string, unit int, f func(t DataType, dst, src []byte)) RedOp {
	return RedOp{Kind: KindUser, Name: name, Unit: unit, Func: f}
}

// String is "sum", "bitand", "premulsum(0.5)", "user(name)".
func (op RedOp) String() string {
	switch {
	case op.Kind == KindUser:
		return "user(" + op.Name + ")"
	case op.Kind == KindPreMulSum && op.At != nil && op.At.IsHost():
		return "premulsum(scalar in host memory)"
	case op.Kind == KindPreMulSum && op.At != nil:
		return fmt.Sprintf("premulsum(scalar on device %d)", op.At.Dev())
	case op.Kind == KindPreMulSum && op.Int != 0:
		return "premulsum(" + strconv.FormatInt(int64(op.Int), 10) + ")"
	case op.Kind == KindPreMulSum:
		return "premulsum(" + strconv.FormatFloat(op.Scale, 'g', -1, 64) + ")"
	}
	return op.Kind.String()
}

// ParseOp finds a reduction by the name from String, "user" excepted. MPI's names band,
// bor and bxor and nccl-tests' mulsum, with a scalar, are understood too.
func ParseOp(s string) (RedOp, error) {
	name, scalar, scaled := strings.Cut(s, "(")
	switch name {
	case "band", "bor", "bxor":
		name = "bit" + name[1:]
	case "mulsum":
		name = "premulsum"
	}
	if k := slices.Index(kindNames[:KindPreMulSum], name); k >= 0 && !scaled {
		return RedOp{Kind: Kind(k)}, nil
	}
	scalar, closed := strings.CutSuffix(scalar, ")")
	if name == kindNames[KindPreMulSum] && closed {
		if i, err := strconv.ParseInt(scalar, 10, 64); err == nil {
			return PreMulSumInt(i), nil
		}
		if f, err := strconv.ParseFloat(scalar, 64); err == nil {
			return PreMulSum(f), nil
		}
	}
	return RedOp{}, fmt.Errorf("parse reduction: %q is none of %s, premulsum(NUMBER)",
		s, strings.Join(kindNames[:KindPreMulSum], ", "))
}
