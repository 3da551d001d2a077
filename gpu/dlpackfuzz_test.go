//go:build linux && (amd64 || arm64) && !ringo_nogpu

package gpu_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu/dlpack"
	"github.com/ringo-go/ringo/internal/test/must"
)

// FuzzDLPack: a struct with any content is borrowed, or refused by the name of a field. A borrowed tensor has the bytes
// of its shape and lies at the struct's address.
func FuzzDLPack(f *testing.F) {
	f.Add(uint32(1), uint64(4096), int32(1), int32(0), int32(2), byte(2), byte(32), uint16(1), int64(2), int64(3),
		int64(3), int64(1), uint64(8))
	f.Add(uint32(1), uint64(1<<63), int32(2), int32(9), int32(2), byte(5), byte(128), uint16(1), int64(1<<40),
		int64(1<<20), int64(0), int64(0), uint64(1<<63))
	f.Fuzz(func(t *testing.T, version uint32, data uint64, kind, id, ndim int32, code, bits byte, lanes uint16,
		a, b, c, d int64, offset uint64) {
		const maxDims = 64
		numbers := make([]int64, 2*maxDims)
		numbers[0], numbers[1], numbers[maxDims], numbers[maxDims+1] = a, b, c, d
		v := &struct { // DLManagedTensorVersioned
			major, minor     uint32
			context, deleter uintptr
			flags            uint64
			data             uintptr
			device, id, ndim int32
			dtype            dlpack.Type
			shape, strides   uintptr
			offset           uint64
		}{major: version, data: uintptr(data), device: kind, id: id, ndim: ndim,
			dtype: dlpack.Type{Code: dlpack.Code(code), Bits: bits, Lanes: lanes},
			shape: uintptr(unsafe.Pointer(&numbers[0])), strides: uintptr(unsafe.Pointer(&numbers[maxDims])), offset: offset}
		var pins runtime.Pinner
		defer pins.Unpin()
		pins.Pin(v)
		pins.Pin(&numbers[0])
		x, err := dlpack.Borrow(uintptr(unsafe.Pointer(v)))
		if err != nil {
			wrong, ok := errors.AsType[*dlpack.Error](err)
			require.True(t, ok, err)
			require.True(t, slices.Contains([]string{"version", "data", "device", "ndim", "dtype", "shape", "strides",
				"byte_offset"}, wrong.Field), wrong.Field)
			return
		}
		n := int(x.Type.Bits) / 8
		for _, k := range x.Shape {
			n *= k
		}
		r := must.Get(x.Region())
		require.Equal(t, n, r.Len())
		if n > 0 {
			require.EqualValues(t, data+offset, r.Ptr())
		}
		require.NoError(t, x.Close())
	})
}
