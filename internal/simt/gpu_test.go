package simt_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/gputest"
)

// compute runs a kernel in one block and gives the words that its first
// parameter points to, afterwards. Under REQUIRE=cuda it runs on a GPU: what the
// tests want is what hardware does.
func compute(t *testing.T, o options, file, kernel string, threads int, data []uint32, rest ...any) []uint32 {
	if gputest.OnGPU() {
		return onGPU(t, source(t, file), kernel, threads, data, rest...)
	}
	m := boot(t, file, o)
	p := m.words(data...)
	m.run(m.grid(kernel, 1, threads, append([]any{p}, rest...)...))
	require.Empty(t, m.found)
	return m.read(p, len(data))
}

// emulated skips a test of what only the emulator does.
func emulated(t testing.TB) {
	if gputest.OnGPU() {
		t.Skip("is about the emulator")
	}
}

// source is a PTX text, or that of a file of testdata.
func source(t testing.TB, text string) string {
	if len(text) > 40 {
		return text
	}
	b, err := os.ReadFile("testdata/" + text)
	require.NoError(t, err)
	return string(b)
}

func onGPU(t *testing.T, text, kernel string, threads int, data []uint32, rest ...any) []uint32 {
	d := gputest.Driver(t)
	dev, err := d.DeviceGet(0)
	require.NoError(t, err)
	c, err := d.DevicePrimaryCtxRetain(dev)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.DevicePrimaryCtxRelease(dev)) }()
	b := make([]byte, 4*len(data))
	for i, v := range data {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	require.NoError(t, cuda.With(d, c, func() error {
		mod, err := d.ModuleLoadData([]byte(text))
		require.NoError(t, err)
		defer func() { require.NoError(t, d.ModuleUnload(mod)) }()
		f, err := d.ModuleGetFunction(mod, kernel)
		require.NoError(t, err)
		p, err := d.MemAlloc(len(b))
		require.NoError(t, err)
		defer func() { require.NoError(t, d.MemFree(p)) }()
		require.NoError(t, d.MemcpyHtoD(p, b))
		l := &cuda.Launch{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: uint32(threads)}}
		require.NoError(t, d.LaunchKernel(f, l, args(append([]any{uint64(p)}, rest...)...)))
		require.NoError(t, d.CtxSynchronize())
		return d.MemcpyDtoH(b, p)
	}))
	got := make([]uint32, len(data))
	for i := range got {
		got[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return got
}
