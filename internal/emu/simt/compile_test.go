package simt_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"not emulated", hand("isspacep.const %p1, %rd2;"), "line 16: \"isspacep.const %p1, %rd2\""},
		{"store to a parameter", hand("st.param.u64 [out], %rd0;"), "cannot be written"},
		{"more local memory than threads have", hand(".local .align 4 .b8 a[40000000000]; ret;"),
			"40000000000 bytes of local memory, a thread has at most 524288"},
		{"atomic on local memory", hand(".local .align 4 .b8 a[8]; atom.local.add.u32 %r1, [a], 1;"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := ptx.Parse("k.ptx", []byte(c.text))
			if err == nil {
				_, err = simt.Compile(m)
			}
			require.Error(t, err)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestKernelSizes(t *testing.T) {
	m := boot(t, "block.ptx", options{})
	k, ok := m.image.Program.Kernel("sum")
	require.True(t, ok)
	require.Equal(t, 4*32, k.Shared)
	_, ok = m.image.Program.Kernel("total")
	require.False(t, ok)
	require.Equal(t, 4, m.world.Fits(0, k, 64, 0), "blocks a multiprocessor")
	require.Equal(t, 2, m.world.Fits(0, k, 1024, 0), "threads")
	require.Equal(t, 2, m.world.Fits(0, k, 64, 100<<10), "shared memory")
	require.Panics(t, func() { m.image.Program.Load(nil) }, "variables have no address")
}

// The PTX of testdata is what clang makes of the CUDA beside it.
func TestKernelsAreCompiled(t *testing.T) {
	tier.Long(t) // it starts a compiler
	emulated(t)
	need.Tool(t, "clang++-19")
	dir := t.TempDir()
	out, err := exec.Command("sh", "testdata/compile.sh", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	files := must.Get(filepath.Glob(dir + "/*.ptx"))
	require.NotEmpty(t, files)
	for _, file := range files {
		want := must.Get(os.ReadFile(file))
		require.True(t, source(t, filepath.Base(file)) == string(want), "%s is stale: run testdata/compile.sh",
			filepath.Base(file))
	}
}

// What can be parsed is compiled or refused, and runs or stops with a fault.
func FuzzKernels(f *testing.F) {
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(f, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(b), uint64(1))
		// One kernel each is shorter, and changes matter more.
		parts := strings.Split(string(b), "// -- Begin function")
		for _, p := range parts[1:] {
			f.Add(".version 7.0\n.target sm_70\n.address_size 64\n//"+p, uint64(2))
		}
	}
	f.Add(hand("bar.red.popc.u32 %r2, 1, %p1; shfl.sync.up.b32 %r2|%p1, %r0, 4, 0, -1; match.all.sync.b32 %r2|%p1, %r9, "+
		"-1;"), uint64(3))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		mod, err := ptx.Parse("k.ptx", []byte(text))
		if err != nil {
			return
		}
		p, err := simt.Compile(mod)
		if err != nil {
			return
		}
		mem := weakmem.New(weakmem.Config{Seed: seed})
		globals := map[string]uint64{}
		next := uint64(1 << 20)
		place := func(n int) uint64 {
			next += 1 << 20
			if n > 1<<16 || n <= 0 || mem.Map(weakmem.Allocation{Addr: next, Data: make([]byte, n)}) != nil {
				t.Skip("a variable of no size, or of too much")
			}
			return next
		}
		for _, v := range mod.Vars {
			globals[v.Name] = place(v.Size())
		}
		image := p.Load(globals)
		for _, fn := range mod.Funcs {
			k, ok := p.Kernel(fn.Name)
			if !ok || fn.ParamBytes > 1<<10 || k.Local > 1<<12 || k.Shared > 1<<16 {
				continue
			}
			arguments := make([]byte, fn.ParamBytes)
			for i := 0; i+8 <= len(arguments); i += 8 {
				copy(arguments[i:], args(place(4096)))
			}
			w := simt.NewWorld(simt.Config{Seed: seed, Devices: []simt.Shape{small}, Memory: mem, Stall: 10_000})
			g := &simt.Grid{Image: image, Kernel: k, Dim: [3]int{2, 1, 1}, Block: [3]int{33, 1, 1}, Args: arguments, Shared: 256}
			if w.Start(g) != nil {
				continue
			}
			for w.Instructions() < 30_000 && w.Step(1000) > 0 {
			}
			w.Kill(0, nil)
			require.True(t, g.Done())
		}
	})
}
