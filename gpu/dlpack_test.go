//go:build linux && (amd64 || arm64) && !ringo_nogpu

package gpu_test

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/gpu/dlpack"
	"github.com/ringo-go/ringo/gpu/emu"
	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
)

// A library is dlpack/testdata/other.c, compiled and loaded: another library that lends and borrows.
type library struct {
	testing.TB
	dl.Library
}

func other(t testing.TB) library {
	const source = "dlpack/testdata/other.c"
	if _, err := os.Stat(source); err != nil {
		t.Skip("the source is not here")
	}
	l := must.Get(dl.Open(ctest.C(t, "other.so", source, "-shared", "-fPIC")))
	return library{t, l}
}

func (l library) call(name string, args ...uintptr) uintptr {
	fn, err := l.Sym(name)
	require.NoError(l, err)
	return dl.Call(fn, args...)
}

func (l library) back() int { return int(int32(l.call("given_back"))) }

// Go sees and changes what C has lent, in both structs, and gives it back once.
func TestDLPackBorrow(t *testing.T) {
	l := other(t)
	for name, borrow := range map[string]func(uintptr) (*dlpack.Tensor, error){"lend_newer": dlpack.Borrow,
		"lend_older": dlpack.BorrowLegacy} {
		before := l.back()
		x := must.Get(borrow(l.call(name)))
		require.Equal(t, []int{2, 3}, x.Shape)
		data, ok := x.Type.DataType()
		require.True(t, ok)
		require.Equal(t, kernels.Float32, data)
		v := must.Get(dlpack.Slice[float32](x))
		require.Equal(t, []float32{0, 1, 2, 3, 4, 5}, v)
		v[0] = 7
		again := must.Get(dlpack.Slice[float32](x))
		require.Equal(t, float32(7), again[0])
		r := must.Get(x.Region())
		require.Equal(t, 24, r.Len())
		var wrong *dlpack.Error
		require.ErrorAs(t, must.Err(dlpack.Slice[int32](x)), &wrong)
		require.ErrorAs(t, must.Err(dlpack.Slice[string](x)), &wrong)
		require.ErrorAs(t, must.Err(dlpack.Buffer[float32](x, nil)), &wrong)
		require.Equal(t, before, l.back())
		require.NoError(t, x.Close())
		require.Equal(t, before+1, l.back())
		require.ErrorIs(t, x.Close(), dlpack.ErrReturned)
		require.ErrorIs(t, must.Err(dlpack.Slice[float32](x)), dlpack.ErrReturned)
		require.Equal(t, before+1, l.back())
	}
}

// C sees and changes what Go has lent, and its deleter ends the loan, on a thread of C's.
func TestDLPackLend(t *testing.T) {
	l := other(t)
	require.EqualValues(t, uint64(64)<<32|80, l.call("bytes"), "the structs' lengths in C")
	for range 3 {
		for _, older := range []bool{false, true} {
			v := make([]float32, 12)
			for i := range v {
				v[i] = float32(i)
			}
			returned := 0
			o := dlpack.Options{Shape: []int{3, 1, 4}, Returned: func() { returned++ }}
			before := dlpack.Lent()
			var at, old uintptr
			var err error
			if older {
				old, err = dlpack.LendLegacy(mem.Of(v), dlpack.Of(kernels.Float32), o)
			} else {
				at, err = dlpack.Lend(mem.Of(v), dlpack.Of(kernels.Float32), o)
			}
			require.NoError(t, err)
			require.Equal(t, before+1, dlpack.Lent())
			runtime.GC()
			require.EqualValues(t, 66, int64(l.call("borrow", at, old)))
			require.Equal(t, float32(22), v[11])
			require.Equal(t, 1, returned)
			require.Equal(t, before, dlpack.Lent())
		}
	}
	at := must.Get(dlpack.Lend(mem.Of(make([]int64, 2)), dlpack.Of(kernels.Int64), dlpack.Options{}))
	before := dlpack.Lent()
	l.call("twice", at)
	require.Equal(t, before-1, dlpack.Lent(), "a second end of a loan is none")
}

// TestDLPackMemoryStays: lent memory keeps its content although only the borrower still refers to it.
func TestDLPackMemoryStays(t *testing.T) {
	l := other(t)
	var lent []uintptr
	for n := range 100 {
		v := make([]float32, 1000)
		v[n] = 1
		at := must.Get(dlpack.Lend(mem.Of(v), dlpack.Of(kernels.Float32), dlpack.Options{}))
		lent = append(lent, at)
	}
	for range 3 {
		runtime.GC()
		for range 100 {
			_ = make([]float32, 1000)
		}
	}
	for _, at := range lent {
		require.EqualValues(t, 1, int64(l.call("borrow", at, 0)))
	}
	require.Zero(t, dlpack.Lent())
}

// TestDLPackHostile: anything but a dense array of a known type in memory that Go reaches is refused by the name of the
// wrong field, and stays the caller's.
func TestDLPackHostile(t *testing.T) {
	l := other(t)
	for i, field := range []string{"version", "data", "device", "device", "ndim", "ndim", "dtype", "dtype", "dtype",
		"dtype", "shape", "shape", "shape",
		"strides", "strides", "strides", "strides", "byte_offset", "byte_offset", ""} {
		at := l.call("hostile", uintptr(i))
		if field == "" {
			require.Zero(t, at, "the last")
			break
		}
		before := l.back()
		_, err := dlpack.Borrow(at)
		wrong, ok := errors.AsType[*dlpack.Error](err)
		require.True(t, ok, "%d: %v", i, err)
		require.Equal(t, field, wrong.Field, "%d: %v", i, err)
		require.NotEmpty(t, wrong.Reason)
		require.Equal(t, before, l.back())
		require.NoError(t, dlpack.Discard(at))
		require.Equal(t, before+1, l.back())
	}
	before := l.back()
	require.NoError(t, dlpack.DiscardLegacy(l.call("lend_older")))
	require.Equal(t, before+1, l.back())
	for _, f := range []func() error{
		func() error { return must.Err(dlpack.Borrow(0)) },
		func() error { return must.Err(dlpack.BorrowLegacy(0)) },
		func() error { return dlpack.Discard(0) }, func() error { return dlpack.DiscardLegacy(0) },
	} {
		_, ok := errors.AsType[*dlpack.Error](f())
		require.True(t, ok)
	}
}

// TestDLPackOdd: unusual but valid tensors are borrowed.
func TestDLPackOdd(t *testing.T) {
	l := other(t)
	for i, want := range []struct {
		shape []int
		data  []float32
	}{
		{[]int{2, 3}, []float32{0, 1, 2, 3, 4, 5}}, {[]int{1, 3}, []float32{0, 1, 2}}, {[]int{0, 3}, []float32{}},
		{nil, []float32{0}},
		{[]int{2, 3}, []float32{0, 1, 2, 3, 4, 5}}, {[]int{2, 3}, []float32{0, 1, 2, 3, 4, 5}},
		{[]int{2, 3}, []float32{0, 1, 2, 3, 4, 5}},
	} {
		x, err := dlpack.Borrow(l.call("odd", uintptr(i)))
		require.NoError(t, err, "%d", i)
		require.Equal(t, want.shape, x.Shape, "%d", i)
		require.Equal(t, i == 4, x.ReadOnly, "%d", i)
		v := must.Get(dlpack.Slice[float32](x))
		require.Len(t, v, len(want.data), "%d", i)
		require.Equal(t, want.data, append([]float32{}, v...), "%d", i)
		require.NoError(t, x.Close())
	}
}

// TestDLPackGPU: GPU memory that is lent to another library and borrowed back has the same address.
func TestDLPackGPU(t *testing.T) {
	l := other(t)
	m := must.Get(emu.Open(emu.Config{GPUs: make([]emu.GPU, 2)}))
	defer func() { require.NoError(t, m.Close()) }()
	d := m.Devices()[1]
	b := must.Get(gpu.Alloc[float32](d, 6))
	require.NoError(t, b.Upload(0, []float32{1, 2, 3, 4, 5, 6}))
	returned := false
	at, err := dlpack.Lend(b.Slice(2, 6).Region(), dlpack.Of(kernels.Float32),
		dlpack.Options{Returned: func() { returned = true }})
	require.NoError(t, err)
	x := must.Get(dlpack.Borrow(l.call("pass", at)))
	v := must.Get(dlpack.Buffer[float32](x, d))
	require.Equal(t, b.Region().Ptr()+8, v.Region().Ptr())
	got := make([]float32, 4)
	require.NoError(t, v.Download(0, got))
	require.Equal(t, []float32{3, 4, 5, 6}, got)
	require.Error(t, v.Free(), "it is the other library's")
	require.ErrorContains(t, must.Err(dlpack.Slice[float32](x)), "see Buffer")
	require.ErrorContains(t, must.Err(dlpack.Buffer[float32](x, m.Devices()[0])), "memory of GPU 1, not of 0")
	require.NoError(t, b.Free())
	_, err = dlpack.Buffer[float32](x, d)
	require.ErrorContains(t, err, "no memory of a GPU", "who has lent it freed it")
	require.NoError(t, x.Close())
	require.True(t, returned)
}

// TestDLPackRefused: wrong types, shapes and regions are not lent.
func TestDLPackRefused(t *testing.T) {
	f32, v := dlpack.Of(kernels.Float32), make([]float32, 6)
	for field, f := range map[string]func() (uintptr, error){
		"dtype": func() (uintptr, error) { return dlpack.Lend(mem.Of(v), dlpack.Type{}, dlpack.Options{}) },
		"ndim":  func() (uintptr, error) { return dlpack.Lend(mem.Of(v), f32, dlpack.Options{Shape: make([]int, 65)}) },
		"flags": func() (uintptr, error) { return dlpack.LendLegacy(mem.Of(v), f32, dlpack.Options{ReadOnly: true}) },
	} {
		_, err := f()
		wrong, ok := errors.AsType[*dlpack.Error](err)
		require.True(t, ok, "%s: %v", field, err)
		require.Equal(t, field, wrong.Field)
	}
	for _, shape := range [][]int{{7}, {2, 2}, {-6}, {1 << 62, 1 << 62}, {0}} {
		_, err := dlpack.Lend(mem.Of(v), f32, dlpack.Options{Shape: shape})
		wrong, ok := errors.AsType[*dlpack.Error](err)
		require.True(t, ok, "%v: %v", shape, err)
		require.Equal(t, "shape", wrong.Field)
	}
	require.Error(t, must.Err(dlpack.Lend(mem.Host(make([]byte, 7)), f32, dlpack.Options{})))
	require.Zero(t, dlpack.Lent())
}

// TestDLPackTypes: each data type of collectives has a Type of its own, which leads back to the data type.
func TestDLPackTypes(t *testing.T) {
	seen := map[dlpack.Type]bool{}
	for d := kernels.Int8; d <= kernels.Float8E5M2; d++ {
		x := dlpack.Of(d)
		require.Equal(t, 8*d.Size(), int(x.Bits), d)
		require.False(t, seen[x])
		seen[x] = true
		back, ok := x.DataType()
		require.True(t, ok)
		require.Equal(t, d, back)
	}
	_, ok := dlpack.Type{Code: dlpack.Complex, Bits: 64, Lanes: 1}.DataType()
	require.False(t, ok)
	x := must.Get(dlpack.For[complex128]())
	require.Equal(t, dlpack.Type{Code: dlpack.Complex, Bits: 128, Lanes: 1}, x)
	require.Error(t, must.Err(dlpack.For[struct{}]()))
}
