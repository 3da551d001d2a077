package gpu

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/mem"
)

// kernels has a kernel that stores all of its parameters, and one that uses shared memory.
const kernels = `.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 counter = 5;
.extern .shared .align 16 .b8 room[];
.visible .entry all(.param .u64 out, .param .u32 a, .param .s8 b, .param .f32 c, .param .f64 d, .param .align 8 .b8 e[16])
{
	.reg .b32 %r<4>;
	.reg .b16 %h;
	.reg .f32 %f;
	.reg .f64 %d;
	.reg .b64 %a<4>;
	ld.param.u64 %a0, [out];
	ld.param.u32 %r0, [a];
	st.global.u32 [%a0], %r0;
	ld.param.s8 %h, [b];
	cvt.s32.s8 %r1, %h;
	st.global.u32 [%a0+4], %r1;
	ld.param.f32 %f, [c];
	st.global.f32 [%a0+8], %f;
	ld.param.f64 %d, [d];
	st.global.f64 [%a0+16], %d;
	ld.param.u64 %a1, [e];
	st.global.u64 [%a0+24], %a1;
	ld.param.u32 %r2, [e+8];
	st.global.u32 [%a0+32], %r2;
	ret;
}
.visible .entry last(.param .u64 out)
{
	.reg .b32 %r<4>;
	.reg .b64 %a<4>;
	ld.param.u64 %a0, [out];
	mov.u32 %r0, %dynamic_smem_size;
	mov.u32 %r1, room;
	add.u32 %r2, %r1, %r0;
	st.shared.u32 [%r2+-4], %r0;
	ld.shared.u32 %r3, [%r2+-4];
	st.global.u32 [%a0], %r3;
	ret;
}
`

// struct16 is the type of parameter e of the first kernel.
type struct16 struct {
	At uint64
	N  uint32
	_  uint32
}

func TestKernel(t *testing.T) {
	d := must.Get(open(t, 1).Device(0))
	file := filepath.Join(t.TempDir(), "kernels.ptx")
	require.NoError(t, os.WriteFile(file, []byte(kernels), 0o600))
	m := must.Get(d.LoadFile(file))
	require.Equal(t, []string{"all", "last"}, m.Kernels())
	out := must.Get(Alloc[uint32](d, 16))
	require.NoError(t, out.Upload(Legacy, make([]uint32, 16)))
	k := must.Get(m.Kernel("all"))
	require.Equal(t, "all", k.Name())
	s := must.Get(d.NewStream())
	require.NoError(t, k.Launch(s, Launch{}, out, 7, int8(-3), float32(1.5), 2.5, struct16{At: 1 << 40, N: 9}))
	got := make([]uint32, 16)
	require.NoError(t, out.Download(s, got))
	require.Equal(t, []uint32{7, 0xfffffffd, 0x3fc00000, 0, 0, 0x40040000, 0, 1 << 8, 9}, got[:9])

	// The same without knowing the parameters: only by the types of the arguments.
	k.signature = nil
	require.NoError(t, k.Launch(s, Launch{}, out.Region(), uint32(8), int8(-3), float32(1.5), 2.5, struct16{}))
	require.NoError(t, out.Download(s, got))
	require.EqualValues(t, 8, got[0])

	last := must.Get(m.Kernel("last"))
	for _, shared := range []int{4, 40 << 10, 90 << 10, 60 << 10} {
		require.NoError(t, last.Launch(s, Launch{Shared: shared}, out))
		require.NoError(t, out.Download(s, got))
		require.EqualValues(t, shared, got[0])
	}
	n := must.Get(last.Blocks(32, 100<<10))
	require.Positive(t, n)

	counter := must.Get(m.Variable("counter"))
	b := make([]byte, 4)
	require.NoError(t, d.Read(b, counter))
	require.EqualValues(t, 5, binary.LittleEndian.Uint32(b))
	require.ErrorIs(t, must.Err(m.Variable("absent")), cuda.ErrNotFound)

	require.NoError(t, d.DestroyStream(s))
	require.NoError(t, out.Free())
	require.NoError(t, m.Close())
}

func TestLaunchMistakes(t *testing.T) {
	d := must.Get(open(t, 1).Device(0))
	m := must.Get(d.Load([]byte(kernels)))
	_, err := m.Kernel("al")
	require.ErrorIs(t, err, ErrNoKernel)
	require.ErrorContains(t, err, "the module has all, last")
	k := must.Get(m.Kernel("all"))
	good := []any{mem.Region{}, uint32(1), int8(1), float32(1), 1.0, struct16{}}
	for _, c := range []struct {
		index int
		arg   any
		want  string
	}{
		{0, uint32(1), "a uint32 has 4 bytes, and the parameter 8"},
		{0, mem.Host(make([]byte, 4)), "host memory: copy it"},
		{0, (*Buffer[byte])(nil), "a nil *gpu.Buffer[uint8]"},
		{0, new(int), "a *int holds pointers"},
		{1, 1 << 32, "4294967296 does not fit into 32 bits"},
		{1, int64(1), "a int64 has 8 bytes, and the parameter 4"},
		{1, float32(1), "a float32, and the parameter is .u32"},
		{2, 128, "128 does not fit into 8 bits"},
		{2, "x", "a string holds pointers"},
		{3, 1.5, "a float64, and the parameter is .f32"},
		{3, int32(1), "a int32, and the parameter is .f32"},
		{4, float32(1), "a float32, and the parameter is .f64"},
		{5, uint64(1), "a uint64 has 8 bytes, and the parameter 16"},
	} {
		args := append([]any(nil), good...)
		args[c.index] = c.arg
		var wrong *ArgumentError
		err := k.Launch(Legacy, Launch{}, args...)
		require.ErrorAs(t, err, &wrong, "%v", c)
		require.Equal(t, c.index, wrong.Index)
		require.ErrorContains(t, err, c.want)
	}
	var wrong *ArgumentError
	require.ErrorAs(t, k.Launch(Legacy, Launch{}, 1), &wrong)
	require.ErrorContains(t, wrong,
		"1 arguments, and it has 6 parameters: all(.u64 out, .u32 a, .s8 b, .f32 c, .f64 d, .b8 e[16])")
	k.signature = nil
	require.ErrorContains(t, k.Launch(Legacy, Launch{}, 1), "give an int32, int64")

	last := must.Get(m.Kernel("last"))
	for _, l := range []Launch{{Block: [3]int{2000}}, {Block: [3]int{-1}}, {Shared: 1 << 30}, {Shared: -1}} {
		var refused *LaunchError
		require.ErrorAs(t, last.Launch(Legacy, l, mem.Region{}), &refused)
		require.Equal(t, l, refused.Launch)
		require.Equal(t, "last", refused.Kernel)
	}
	require.NoError(t, m.Close())
	_, err = d.Load([]byte("nonsense"))
	var refused *cuda.Error
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "gpu: device 0: load ptx: ")
	require.ErrorIs(t, must.Err(d.LoadFile("absent.ptx")), os.ErrNotExist)
}

// TestSharedMemoryOfKernels: a kernel that is looked up twice is one Kernel, which is allowed the most shared memory of
// all launches.
func TestSharedMemoryOfKernels(t *testing.T) {
	d := must.Get(open(t, 1).Device(0))
	m := must.Get(d.Load([]byte(kernels)))
	out := must.Get(Alloc[uint32](d, 1))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			k, err := m.Kernel("last")
			if assert.NoError(t, err) {
				assert.NoError(t, k.Launch(Legacy, Launch{Shared: (50 + 5*i) << 10}, out))
			}
		})
	}
	wg.Wait()
	a := must.Get(m.Kernel("last"))
	b := must.Get(m.Kernel("last"))
	require.NoError(t, a.Launch(Legacy, Launch{Shared: 100 << 10}, out))
	require.NoError(t, b.Launch(Legacy, Launch{Shared: 60 << 10}, out))
	require.NoError(t, a.Launch(Legacy, Launch{Shared: 100 << 10}, out))
	// A driver takes 32 bits.
	var refused *LaunchError
	require.ErrorAs(t, a.Launch(Legacy, Launch{Shared: 1 << 32}, out), &refused)
	require.Error(t, must.Err(a.Blocks(32, 1<<32)))

	// What a driver does with handles of a module that is gone is not defined.
	require.NoError(t, d.Synchronize(Legacy))
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	require.ErrorIs(t, a.Launch(Legacy, Launch{}, out), ErrClosed)
	require.ErrorIs(t, must.Err(a.Blocks(32, 0)), ErrClosed)
	require.ErrorIs(t, must.Err(m.Kernel("last")), ErrClosed)
	require.ErrorIs(t, must.Err(m.Variable("counter")), ErrClosed)
	require.NoError(t, out.Free())
}

// A kernel of one device reads and writes memory of another.
func TestReach(t *testing.T) {
	m := open(t, 2)
	if m.Count() < 2 {
		t.Skip("one GPU")
	}
	a, b := m.devices[0], m.devices[1]
	require.NoError(t, a.Reach(a))
	require.NoError(t, a.Reach(b))
	require.NoError(t, a.Reach(b))
	theirs := must.Get(Alloc[uint32](b, 1))
	mod := must.Get(a.Load([]byte(kernels)))
	k := must.Get(mod.Kernel("last"))
	require.NoError(t, k.Launch(Legacy, Launch{Shared: 64}, theirs))
	require.NoError(t, a.Synchronize(Legacy))
	got := make([]uint32, 1)
	require.NoError(t, theirs.Download(Legacy, got))
	require.EqualValues(t, 64, got[0])
	require.NoError(t, mod.Close())
	require.NoError(t, theirs.Free())
}

// The usual arguments are packed without allocating.
func TestPackAllocates(t *testing.T) {
	k := &Kernel{name: "k", signature: &ptx.Func{ParamBytes: 32, Params: []ptx.Var{
		{Type: ptx.U64, Count: 1}, {Type: ptx.U32, Count: 1, Offset: 8}, {Type: ptx.F32, Count: 1, Offset: 12},
		{Type: ptx.S64, Count: 1, Offset: 16}, {Type: ptx.F64, Count: 1, Offset: 24},
	}}}
	args := []any{mem.Device(0, 1<<40, 4), 7, float32(1), int64(-1), 1.0}
	var b []byte
	var err error
	require.Zero(t, testing.AllocsPerRun(100, func() { b, err = k.pack(b[:0], args) }))
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0, 0, 0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0x80, 0x3f, 255, 255, 255, 255, 255, 255, 255, 255,
		0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, b)
}
