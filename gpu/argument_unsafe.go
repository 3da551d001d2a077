package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/mem"
)

// isPointer reports whether an argument is an address.
func isPointer(a any) bool {
	switch a.(type) {
	case nil, mem.Region, interface{ Region() mem.Region }:
		return true
	}
	return false
}

// encode writes an argument into b, the bytes of a parameter. It returns why the argument does not suit, "" if it does.
// one reports whether the parameter is a single number of type t, which may be NoType.
func encode(b []byte, t ptx.Type, one bool, a any) (reason string) {
	if one && !t.Float() && len(b) <= 8 {
		if reason, done := integer(b, t, a); done {
			return reason
		}
	}
	switch v := a.(type) {
	case nil:
		return exactly(b, 8, 0, a)
	case mem.Region:
		return address(b, v)
	case interface{ Region() mem.Region }:
		if reflect.ValueOf(a).Kind() == reflect.Pointer && reflect.ValueOf(a).IsNil() {
			return "a nil " + reflect.TypeOf(a).String()
		}
		return address(b, v.Region())
	case float32:
		if one && t != ptx.F32 && t != ptx.B32 {
			return fmt.Sprintf("a float32, and the parameter is .%v", t)
		}
		return exactly(b, 4, uint64(math.Float32bits(v)), a)
	case float64:
		if one && t != ptx.F64 && t != ptx.B64 {
			return fmt.Sprintf("a float64, and the parameter is .%v", t)
		}
		return exactly(b, 8, math.Float64bits(v), a)
	}
	return reflected(b, t, one, a)
}

// integer is encode for the usual integer types, without reflection. done reports whether a has such a type.
func integer(b []byte, t ptx.Type, a any) (reason string, done bool) {
	switch v := a.(type) {
	case int:
		return whole(b, t, int64(v)), true
	case uint32:
		return exactly(b, 4, uint64(v), a), true
	case int32:
		return exactly(b, 4, uint64(v), a), true
	case uint64:
		return exactly(b, 8, v, a), true
	case int64:
		return exactly(b, 8, uint64(v), a), true
	case uintptr:
		return exactly(b, 8, uint64(v), a), true
	}
	return "", false
}

// reflected is encode for a value of any other type: it writes the value's bytes, if the value holds no pointers.
func reflected(b []byte, t ptx.Type, one bool, a any) (reason string) {
	rt := reflect.TypeOf(a)
	switch k := rt.Kind(); {
	case !flat(rt) && k != reflect.Uintptr:
		return fmt.Sprintf("a %v holds pointers, or nothing: give device memory as a mem.Region or a *gpu.Buffer", rt)
	case one && t.Float() && (k <= reflect.Uintptr || k == reflect.Complex64 || k == reflect.Complex128):
		return fmt.Sprintf("a %v, and the parameter is .%v", rt, t)
	case int(rt.Size()) != len(b):
		return sizes(rt.String(), int(rt.Size()), len(b))
	}
	p := reflect.New(rt)
	p.Elem().Set(reflect.ValueOf(a))
	copy(b, unsafe.Slice((*byte)(p.UnsafePointer()), len(b)))
	return ""
}

// whole is encode for an int, which a parameter of any size takes if the number fits.
func whole(b []byte, t ptx.Type, v int64) string {
	width := 8 * len(b)
	if width < 64 && (v < -1<<(width-1) || v >= 1<<width || t.Signed() && v >= 1<<(width-1)) {
		return fmt.Sprintf("%d does not fit into %d bits", v, width)
	}
	put(b, uint64(v))
	return ""
}

// exactly writes the bits of a into a parameter of exactly size bytes. A nil a stands for an address.
func exactly(b []byte, size int, bits uint64, a any) string {
	if len(b) != size {
		what := "pointer"
		if a != nil {
			what = fmt.Sprintf("%T", a)
		}
		return sizes(what, size, len(b))
	}
	put(b, bits)
	return ""
}

func sizes(what string, have, want int) string {
	return fmt.Sprintf("a %s has %d bytes, and the parameter %d", what, have, want)
}

func put(b []byte, bits uint64) {
	var all [8]byte
	binary.LittleEndian.PutUint64(all[:], bits)
	copy(b, all[:])
}

// address writes the address of a region, and refuses host memory.
func address(b []byte, r mem.Region) string {
	if r.IsHost() && r.Len() > 0 {
		return "host memory: copy it to memory of gpu.Device.Alloc"
	}
	var at uintptr
	if !r.IsNil() {
		at = r.Ptr()
	}
	return exactly(b, 8, uint64(at), nil)
}
