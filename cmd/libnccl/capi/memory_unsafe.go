package capi

import (
	"fmt"
	"unsafe"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/mem"
)

// hostMemory is n bytes of C's memory, which lies outside of Go's heap, so that an address keeps it valid.
func hostMemory(at uintptr, n int) mem.Region {
	return mem.Host(unsafe.Slice((*byte)(pointer(at)), n))
}

// pointer is an address of C's memory.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// text is a C string, "" for null.
func text(at uintptr) string {
	if at == 0 {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(pointer(at), n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(pointer(at)), n))
}

// addressOf is where a slice begins.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// readConfig copies a program's ncclConfig_t, which may be longer or shorter than ours.
func readConfig(at uintptr) (f configFields) {
	f = undefined
	size := *(*uintptr)(pointer(at))
	n := min(max(size, headerBytes), unsafe.Sizeof(f))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&f)), n), unsafe.Slice((*byte)(pointer(at)), n))
	return f
}

// headerBytes is the length of the fields that every ncclConfig_t has: size, magic and version.
const headerBytes = unsafe.Offsetof(undefined.blocking)

// simFields is ncclSimInfo_t.
type simFields struct {
	size           uintptr
	magic, version uint32
	estimatedTime  float32
}

// simMagic is in every ncclSimInfo_t; simBytes is the least size of one.
const (
	simMagic = 0x74685283
	simBytes = unsafe.Offsetof(simFields{}.estimatedTime) + 4
)

// simInfo is a program's ncclSimInfo_t.
func simInfo(at uintptr) *simFields { return (*simFields)(pointer(at)) }

// PutParameter stores the value of a parameter as an integer of so many bits at an address.
func (l *Library) PutParameter(number, bits int, signed bool, at uintptr) error {
	if at == 0 {
		return fmt.Errorf("%w: out is null", ringo.ErrInvalid)
	}
	v, err := l.ParameterInt(number, bits, signed)
	if err != nil {
		return err
	}
	switch bits {
	case 8:
		*(*int8)(pointer(at)) = int8(v)
	case 16:
		*(*int16)(pointer(at)) = int16(v)
	case 32:
		*(*int32)(pointer(at)) = int32(v)
	default:
		*(*int64)(pointer(at)) = v
	}
	return nil
}
