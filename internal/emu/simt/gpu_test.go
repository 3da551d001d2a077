package simt_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/must"
)

// A run is of a kernel. Its first parameters are pointers to words, then come
// numbers. Under REQUIRE=cuda it is on a GPU: what the tests want is what
// hardware does.
type run struct {
	file, kernel string
	blocks       int // 0: one
	blocksY      int // likewise
	threads      int
	shared       int
	cooperative  bool
	clusters     int // blocks of a cluster, 0: as the kernel says
	words        [][]uint32
	unset        []int // numbers of unwritten words, after those in words
	numbers      []any
}

// do gives what is in the words, then in the unset ones, at the end.
func (r run) do(t *testing.T, o options) [][]uint32 {
	r.blocks, r.blocksY = max(r.blocks, 1), max(r.blocksY, 1)
	if gputest.OnGPU() {
		return r.onGPU(t)
	}
	m := boot(t, r.file, o)
	var a []any
	for _, w := range r.words {
		a = append(a, m.words(w...))
	}
	for _, n := range r.unset {
		a = append(a, m.unwritten(n))
	}
	g := m.grid(r.kernel, r.blocks, r.threads, append(a, r.numbers...)...)
	g.Dim[1] = r.blocksY
	g.Shared, g.Cooperative = r.shared, r.cooperative
	m.run(g)
	require.Empty(t, m.found)
	var got [][]uint32
	for i, w := range r.words {
		got = append(got, m.read(a[i].(uint64), len(w)))
	}
	for i, n := range r.unset {
		got = append(got, m.read(a[len(r.words)+i].(uint64), n))
	}
	return got
}

// cluster is a kernel's text in which it says how many blocks its clusters have.
func (r run) cluster(text string) string {
	if r.clusters == 0 {
		return text
	}
	return strings.Replace(text, ")\n{\n", fmt.Sprintf(")\n.reqnctapercluster %d, 1, 1\n{\n", r.clusters), 1)
}

// compute runs a kernel in one block and gives the words of its first parameter.
func compute(t *testing.T, o options, file, kernel string, threads int, data []uint32, rest ...any) []uint32 {
	return run{file: file, kernel: kernel, threads: threads, words: [][]uint32{data}, numbers: rest}.do(t, o)[0]
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
	b := must.Get(os.ReadFile("testdata/" + text))
	return string(b)
}

func (r run) onGPU(t *testing.T) (got [][]uint32) {
	d := gputest.Driver(t)
	_, c := gputest.Context(t, d, 0)
	require.NoError(t, cuda.With(d, c, func() error {
		mod := must.Get(d.ModuleLoadData([]byte(source(t, r.file))))
		defer func() { require.NoError(t, d.ModuleUnload(mod)) }()
		f := must.Get(d.ModuleGetFunction(mod, r.kernel))
		all := r.words
		for _, n := range r.unset {
			all = append(all, make([]uint32, n))
		}
		var a []any
		for _, w := range all {
			p := must.Get(d.MemAlloc(4 * len(w)))
			defer func() { require.NoError(t, d.MemFree(p)) }()
			require.NoError(t, d.MemcpyHtoD(p, bytesOf(w)))
			a = append(a, uint64(p))
		}
		l := &cuda.Launch{Grid: cuda.Dim3{X: uint32(r.blocks), Y: uint32(r.blocksY)},
			Block: cuda.Dim3{X: uint32(r.threads)}, Shared: r.shared, Cooperative: r.cooperative}
		require.NoError(t, d.LaunchKernel(f, l, args(append(a, r.numbers...)...)))
		require.NoError(t, d.CtxSynchronize())
		for i, w := range all {
			b := make([]byte, 4*len(w))
			require.NoError(t, d.MemcpyDtoH(b, uintptr(a[i].(uint64))))
			v := make([]uint32, len(w))
			for k := range v {
				v[k] = binary.LittleEndian.Uint32(b[4*k:])
			}
			got = append(got, v)
		}
		return nil
	}))
	return got
}

func bytesOf(words []uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}
