package cudaemu_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/must"
)

// Images that are no PTX for the device are refused with the result of a real driver.
func TestRefused(t *testing.T) {
	shapes := []cudaemu.Device{{Major: 7, Minor: 5}}
	// An ELF header of 64 bits for machine 190, and nothing after it.
	cubin := "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\xbe\x00\x01" + strings.Repeat("\x00", 31) +
		"\x40\x00\x38\x00\x00\x00\x40" + strings.Repeat("\x00", 5)
	// A fat binary with an entry for machine code of capability 9.0, of no bytes.
	fat := "\x50\xed\x55\xba\x01\x00\x10\x00\x40" + strings.Repeat("\x00", 7) +
		"\x02\x00\x01\x01\x40" + strings.Repeat("\x00", 23) + "\x5a" + strings.Repeat("\x00", 35)
	for name, c := range map[string]struct {
		image string
		want  cuda.Result
		says  string
	}{
		"empty":           {"", cuda.ErrInvalidImage, ""},
		"text":            {"hello", cuda.ErrInvalidImage, ""},
		"cubin":           {cubin, cuda.ErrNoBinaryForGPU, "compiled"},
		"ELF of a CPU":    {strings.Replace(cubin, "\xbe", "\x3e", 1), cuda.ErrInvalidImage, ""},
		"no ELF":          {"\x7fELF and so on", cuda.ErrInvalidImage, ""},
		"fat binary":      {fat, cuda.ErrNoBinaryForGPU, "machine code alone"},
		"half of one":     {fat[:4], cuda.ErrNoBinaryForGPU, "no fat binary"},
		"instruction":     {edited(t, "bar.sync 0;", "frobnicate 0;"), cuda.ErrInvalidPTX, "ptx:"},
		"cut off":         {ptxText[:strings.Index(ptxText, "bar.sync")], cuda.ErrInvalidPTX, "ptx:"},
		"version":         {edited(t, ".version 7.0", ".version 9.1"), cuda.ErrUnsupportedPTXVersion, "up to 9.0"},
		"target":          {edited(t, "sm_70", "sm_80"), cuda.ErrInvalidPTX, "sm_80"},
		"target, version": {edited(t, "sm_70", "sm_90"), cuda.ErrInvalidPTX, "needs PTX 7.8"},
		"target unknown":  {edited(t, "sm_70", "sm_999"), cuda.ErrInvalidPTX, "sm_999"},
		"target for one": {edited(t, ".version 7.0\n.target sm_70", ".version 8.0\n.target sm_90a"),
			cuda.ErrInvalidPTX, "sm_90a"},
		"address of no variable": {edited(t, "here = there;", "here = store;"), cuda.ErrInvalidPTX, "store"},
		"unknown variable":       {edited(t, "mov.u32 %r3, box;", "mov.u32 %r3, nowhere;"), cuda.ErrInvalidPTX, "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, cudaemu.Config{Shapes: shapes})
			_, err := e.ModuleLoadData([]byte(c.image))
			e.is(err, c.want)
			require.ErrorContains(t, err, c.says)
			m := must.Get(e.ModuleLoadData([]byte(ptxText + "\x00")))
			e.ok(e.ModuleUnload(m))
			e.is(e.ModuleUnload(m), cuda.ErrInvalidHandle)
		})
	}
}

// TestAddressInVariable looks at a variable that holds the address of another.
func TestAddressInVariable(t *testing.T) {
	e := start(t, cudaemu.Config{})
	m := must.Get(e.ModuleLoadData([]byte(ptxText)))
	here, n, err := e.ModuleGetGlobal(m, "here")
	e.ok(err)
	require.Equal(t, 8, n)
	there, n, err := e.ModuleGetGlobal(m, "there")
	e.ok(err)
	require.Equal(t, 16, n)
	b := make([]byte, 8)
	e.ok(e.MemcpyDtoH(b, here))
	require.Equal(t, uint64(there), binary.LittleEndian.Uint64(b))
	e.is(e.MemFree(there), cuda.ErrInvalidValue)
	f := must.Get(e.ModuleGetFunction(m, "store"))
	e.ok(e.ModuleUnload(m))
	e.is(e.LaunchKernel(f, &cuda.Launch{}, make([]byte, 12)), cuda.ErrInvalidHandle)
	_, _, err = e.ModuleGetGlobal(m, "here")
	e.is(err, cuda.ErrInvalidHandle)
}

func TestLimits(t *testing.T) {
	e := start(t, cudaemu.Config{})
	few, box := e.kernel("few"), e.kernel("reverse")
	n := must.Get(e.FuncGetAttribute(cuda.FuncMaxThreadsPerBlock, few))
	require.Equal(t, 64, n)
	n = must.Get(e.FuncGetAttribute(cuda.FuncSharedBytes, box))
	require.Equal(t, 256, n)
	n = must.Get(e.FuncGetAttribute(cuda.FuncMaxDynamicShared, box))
	require.Equal(t, 48<<10-256, n)
	e.is(must.Err(e.FuncGetAttribute(99, box)), cuda.ErrInvalidValue)
	e.is(e.FuncSetAttribute(box, cuda.FuncMaxDynamicShared, 227<<10), cuda.ErrInvalidValue)
	e.ok(e.FuncSetAttribute(box, cuda.FuncMaxDynamicShared, 227<<10-256))

	for name, l := range map[string]cuda.Launch{
		"threads of the function": {Block: cuda.Dim3{X: 65}},
		"dynamic shared memory":   {Shared: 49 << 10},
		"negative":                {Shared: -1},
		"grid":                    {Grid: cuda.Dim3{Z: 65536}},
	} {
		err := e.LaunchKernel(few, &l, nil)
		e.is(err, cuda.ErrInvalidValue)
		require.Contains(t, err.Error(), "kernel few", name)
	}
	e.is(e.LaunchKernel(few, &cuda.Launch{}, make([]byte, 4)), cuda.ErrLaunchOutOfResources)
	e.is(e.LaunchKernel(0, &cuda.Launch{}, nil), cuda.ErrInvalidHandle)
	e.is(e.LaunchKernel(cuda.Function(e.stream(0)), &cuda.Launch{}, nil), cuda.ErrInvalidHandle)

	for _, c := range []struct{ threads, shared, want int }{
		{32, 0, 32}, {1024, 0, 2}, {64, 40 << 10, 5}, {64, 100 << 10, 0}, {65, 0, 21},
	} {
		n := must.Get(e.OccupancyMaxActiveBlocksPerMultiprocessor(few, c.threads, c.shared))
		require.Equal(t, c.want, n, "%+v", c)
	}
}

func BenchmarkLaunch(b *testing.B) {
	for name, cfg := range map[string]cudaemu.Config{"plain": {Plain: true}, "strict": {}} {
		b.Run(name, func(b *testing.B) {
			e := start(b, cfg)
			f := e.kernel("nothing")
			for b.Loop() {
				e.ok(e.LaunchKernel(f, &cuda.Launch{}, nil))
				e.ok(e.CtxSynchronize())
			}
		})
	}
}

// BenchmarkInstructions is how fast kernels run, beside what package simt does alone.
func BenchmarkInstructions(b *testing.B) {
	for name, cfg := range map[string]cudaemu.Config{"plain": {Plain: true}, "strict": {}, "lazy": {Lazy: true}} {
		b.Run(name, func(b *testing.B) {
			e := start(b, cfg)
			before := e.Instructions()
			for b.Loop() {
				launchOf(e, ptxText, "count", 4, 256, 0, &struct{ n uint32 }{1000})
				e.ok(e.CtxSynchronize())
			}
			b.ReportMetric(float64(e.Instructions()-before)/b.Elapsed().Seconds()/1e6, "Minstr/s")
		})
	}
}

// TestSharedProgram runs the same text on several machines at once, which
// compile it once.
func TestSharedProgram(t *testing.T) {
	for range 4 {
		t.Run("machine", func(t *testing.T) {
			t.Parallel()
			e := start(t, cudaemu.Config{})
			for range 10 {
				require.Equal(t, uint32(42), runMessage(e, ptxText))
				require.NoError(t, runReverse(e, ptxText))
			}
			e.clean()
		})
	}
}

// TestKernelBeyondTheEmulator: a module is loaded although the emulator cannot run one of its kernels. That one is
// refused, with its instruction, and the others run.
func TestKernelBeyondTheEmulator(t *testing.T) {
	const text = `.version 8.1
.target sm_90
.address_size 64
.visible .entry good() { ret; }
.visible .entry beyond(.param .u64 p)
{
	.reg .b64 %rd1;
	.reg .f32 %f1;
	ld.param.u64 %rd1, [p];
	multimem.ld_reduce.relaxed.sys.global.add.f32 %f1, [%rd1];
	ret;
}
`
	e := start(t, cudaemu.Config{Shapes: []cudaemu.Device{{Major: 9}}})
	m := must.Get(e.ModuleLoadData([]byte(text)))
	must.Get(e.ModuleGetFunction(m, "good"))
	_, err := e.ModuleGetFunction(m, "beyond")
	e.is(err, cuda.ErrNotSupported)
	require.ErrorContains(t, err, "multimem.ld_reduce")
	require.ErrorContains(t, err, "kernel beyond")
	e.ok(e.ModuleUnload(m))
}
