package cuda

import (
	"reflect"
	"sync"
	"unsafe"
)

// ArgsOf is the bytes of a struct of kernel parameters: *args itself, no copy. Go lays
// out fixed-size fields as C and PTX do. Padding at the end is left out, as kernel
// parameters have none there. The struct must hold no Go pointers.
func ArgsOf[T any](args *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(args)), argBytes(reflect.TypeFor[T]()))
}

var argSizes sync.Map // reflect.Type to int

// argBytes is the size of a struct without the padding at its end.
func argBytes(t reflect.Type) int {
	if n, ok := argSizes.Load(t); ok {
		return n.(int)
	}
	n := int(t.Size())
	if t.Kind() == reflect.Struct && t.NumField() > 0 {
		last := t.Field(t.NumField() - 1)
		n = int(last.Offset + last.Type.Size())
	}
	argSizes.Store(t, n)
	return n
}
