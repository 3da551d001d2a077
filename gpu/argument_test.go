package gpu

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/mem"
)

// TestEncode: each argument becomes the bytes of its parameter, or is refused with a reason.
func TestEncode(t *testing.T) {
	type pair struct {
		A int16
		B uint8
	}
	type number int32
	type word uintptr
	for _, c := range []struct {
		a     any
		t     ptx.Type
		one   bool
		bytes []byte // of the parameter; its length where reason is set
		says  string
	}{
		{nil, ptx.U64, true, make([]byte, 8), ""},
		{nil, ptx.U32, true, make([]byte, 4), "a pointer has 8 bytes, and the parameter 4"},
		{int(-2), ptx.S16, true, []byte{0xfe, 0xff}, ""},
		{int(65535), ptx.U16, true, []byte{0xff, 0xff}, ""},
		{int(65536), ptx.U16, true, make([]byte, 2), "65536 does not fit into 16 bits"},
		{int(-32769), ptx.U16, true, make([]byte, 2), "-32769 does not fit into 16 bits"},
		{int(-32768), ptx.U16, true, []byte{0, 0x80}, ""},
		{int(32768), ptx.S16, true, make([]byte, 2), "32768 does not fit into 16 bits"},
		{int(32767), ptx.S16, true, []byte{0xff, 0x7f}, ""},
		{int(-1), ptx.U64, true, bytes.Repeat([]byte{0xff}, 8), ""},
		{int(1), ptx.F32, true, make([]byte, 4), "a int, and the parameter is .f32"},
		{uint32(7), ptx.U32, true, []byte{7, 0, 0, 0}, ""},
		{uint32(7), ptx.U64, true, make([]byte, 8), "a uint32 has 4 bytes, and the parameter 8"},
		{int32(-7), ptx.S32, true, []byte{0xf9, 0xff, 0xff, 0xff}, ""},
		{int32(-7), ptx.S64, true, make([]byte, 8), "a int32 has 4 bytes, and the parameter 8"},
		{uint64(9), ptx.U64, true, []byte{9, 0, 0, 0, 0, 0, 0, 0}, ""},
		{uint64(9), ptx.U32, true, make([]byte, 4), "a uint64 has 8 bytes, and the parameter 4"},
		{int64(-1), ptx.S64, true, bytes.Repeat([]byte{0xff}, 8), ""},
		{int64(-1), ptx.S8, true, make([]byte, 1), "a int64 has 8 bytes, and the parameter 1"},
		{uintptr(0x1234), ptx.U64, true, []byte{0x34, 0x12, 0, 0, 0, 0, 0, 0}, ""},
		{uintptr(1), ptx.U32, true, make([]byte, 4), "a uintptr has 8 bytes, and the parameter 4"},
		{uint8(5), ptx.U8, true, []byte{5}, ""}, {int16(-1), ptx.S16, true, []byte{0xff, 0xff}, ""},
		{true, ptx.U8, true, []byte{1}, ""},
		{number(3), ptx.S32, true, []byte{3, 0, 0, 0}, ""}, {word(3), ptx.U64, true, []byte{3, 0, 0, 0, 0, 0, 0, 0}, ""},
		{number(3), ptx.F32, true, make([]byte, 4), "a gpu.number, and the parameter is .f32"},
		{float32(1.5), ptx.F32, true, []byte{0, 0, 0xc0, 0x3f}, ""},
		{float32(1.5), ptx.B32, true, []byte{0, 0, 0xc0, 0x3f}, ""},
		{float32(1.5), ptx.U32, true, make([]byte, 4), "a float32, and the parameter is .u32"},
		{float32(1.5), ptx.F64, true, make([]byte, 8), "a float32, and the parameter is .f64"},
		{float64(1.5), ptx.F64, true, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, ""},
		{float64(1.5), ptx.B64, true, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, ""},
		{float64(1.5), ptx.F32, true, make([]byte, 4), "a float64, and the parameter is .f32"},
		{float64(1.5), ptx.S64, true, make([]byte, 8), "a float64, and the parameter is .s64"},
		{float32(1.5), ptx.NoType, false, []byte{0, 0, 0xc0, 0x3f}, ""},
		{float32(1.5), ptx.NoType, false, make([]byte, 8), "a float32 has 4 bytes, and the parameter 8"},
		{pair{1, 2}, ptx.B8, false, []byte{1, 0, 2, 0}, ""},
		{pair{1, 2}, ptx.B8, false, make([]byte, 8), "a gpu.pair has 4 bytes, and the parameter 8"},
		{[2]uint16{1, 2}, ptx.B8, false, []byte{1, 0, 2, 0}, ""},
		{"text", ptx.U64, true, make([]byte, 8),
			"a string holds pointers, or nothing: give device memory as a mem.Region or a *gpu.Buffer"},
		{struct{ p *int }{}, ptx.B8, false, make([]byte, 8),
			"a struct { p *int } holds pointers, or nothing: give device memory as a mem.Region or a *gpu.Buffer"},
		{mem.Device(0, 0x1234, 8), ptx.U64, true, []byte{0x34, 0x12, 0, 0, 0, 0, 0, 0}, ""},
		{mem.Region{}, ptx.U64, true, make([]byte, 8), ""},
		{mem.Host(make([]byte, 4)), ptx.U64, true, make([]byte, 8), "host memory: copy it to memory of gpu.Device.Alloc"},
		{mem.Device(0, 0x1234, 8), ptx.U32, true, make([]byte, 4), "a pointer has 8 bytes, and the parameter 4"},
		{(*Buffer[int32])(nil), ptx.U64, true, make([]byte, 8), "a nil *gpu.Buffer[int32]"},
	} {
		b := make([]byte, len(c.bytes))
		require.Equal(t, c.says, encode(b, c.t, c.one, c.a), "%T %v", c.a, c.a)
		if c.says == "" {
			require.Equal(t, c.bytes, b, "%T %v", c.a, c.a)
		}
	}
}

// Where the parameters are not known, arguments are laid out as in C.
func TestPackByType(t *testing.T) {
	k := &Kernel{name: "k"}
	b := must.Get(k.pack(nil, []any{uint8(1), int32(2), mem.Device(0, 0x1234, 1), int16(3), nil, float64(0)}))
	require.Equal(t, []byte{1, 0, 0, 0, 2, 0, 0, 0, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, b)
	for _, a := range []any{int(1), uint(1)} {
		_, err := k.pack(nil, []any{uint8(1), a})
		require.EqualError(t, err,
			"gpu: kernel k: argument 1 (?): the kernel's parameters are not known: give an int32, int64, uint32 or uint64")
	}
	_, err := k.pack(nil, []any{"text"})
	require.EqualError(t, err,
		"gpu: kernel k: argument 0 (?): a string holds pointers, or nothing: give device memory as a mem.Region or a "+
			"*gpu.Buffer")
	require.EqualError(t, &ArgumentError{"k", -1, "", "why"}, "gpu: kernel k: why")
	launch := &LaunchError{"k", Launch{Grid: [3]int{1, 2, 3}, Block: [3]int{4, 5, 6}, Shared: 7}, ErrClosed}
	require.EqualError(t, launch,
		"gpu: kernel k, grid [1 2 3], block [4 5 6], 7 bytes of shared memory: "+ErrClosed.Error())
	require.True(t, errors.Is(launch, ErrClosed))
}
