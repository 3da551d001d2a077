package ptx

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
	ask "github.com/ringo-go/ringo/internal/test/need"
)

//go:generate testdata/generate.sh

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// fixtures are the texts that clang made of testdata/*.cu, by name.
func fixtures(t testing.TB) map[string][]byte {
	files := must.Get(filepath.Glob("testdata/*.ptx"))
	require.NotEmpty(t, files)
	m := map[string][]byte{}
	for _, file := range files {
		m[strings.TrimSuffix(filepath.Base(file), ".ptx")] = must.Get(os.ReadFile(file))
	}
	return m
}

// comparable drops what printing does not keep.
func comparable(m *Module) *Module {
	m.files, m.marks = nil, nil
	for _, f := range m.Funcs {
		f.Line = 0
		for i := range f.Body {
			f.Body[i].Line = 0
			f.Body[i].Text = ""
		}
	}
	return m
}

// roundTrip requires that the module prints to what parses to the same module.
func roundTrip(t require.TestingT, m *Module) {
	text := m.String()
	again, err := Parse("printed", []byte(text))
	require.NoError(t, err, "%s", text)
	require.Equal(t, comparable(m), comparable(again), "%s", text)
	require.Equal(t, text, again.String())
}

func TestFixtures(t *testing.T) {
	for name, text := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			m := must.Get(Parse(name+".ptx", text))
			golden := filepath.Join("testdata", name+".golden")
			if *rewrite {
				require.NoError(t, os.WriteFile(golden, []byte(m.String()), 0o666))
			}
			want := must.Get(os.ReadFile(golden))
			require.Equal(t, string(want), m.String())
			roundTrip(t, m)
		})
	}
}

// TestShipped parses what this library ships; the kernels' own tests judge it.
func TestShipped(t *testing.T) {
	files := must.Get(filepath.Glob("../../../kernels/ptx/*.ptx"))
	if len(files) == 0 {
		t.Skip("no kernels/ptx/*.ptx: they are made by go generate ./kernels/ptx")
	}
	for _, file := range files {
		text := must.Get(os.ReadFile(file))
		m := must.Get(Parse(file, text))
		roundTrip(t, m)
	}
}

// TestGenerated compiles the fixtures anew and compares.
func TestGenerated(t *testing.T) {
	ask.Tool(t, "clang++-19")
	dir := t.TempDir()
	for _, pattern := range []string{"*.cu", "*.h", "*.sh"} {
		files := must.Get(filepath.Glob("testdata/" + pattern))
		for _, file := range files {
			text := must.Get(os.ReadFile(file))
			require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o777))
		}
	}
	out, err := exec.Command(filepath.Join(dir, "generate.sh")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, want := range fixtures(t) {
		got := must.Get(os.ReadFile(filepath.Join(dir, name+".ptx")))
		require.Equal(t, string(want), string(got), name)
	}
}

// Kernels and their parameters are read where the instructions of the bodies are not known.
func TestParseOutside(t *testing.T) {
	const text = `.version 9.9
.target sm_999
.address_size 64
.global .align 4 .u32 v = 1;
.func (.param .b32 r) helper(.param .b64 a) { { wonder.full.b77 %z, {%q}; } }
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .align 8 .b8 s[24], .param .f32 f)
.maxntid 128, 1, 1
{
	.wonder 7;
	// }
	tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 128;
}
`
	require.Error(t, must.Err(Parse("k.ptx", []byte(text))))
	m := must.Get(ParseOutside("k.ptx", []byte(text)))
	f := m.Func("k")
	require.Equal(t, "k(.u64 x, .b8 s[24], .f32 f)", f.Signature())
	require.Equal(t, 36, f.ParamBytes)
	require.Equal(t, 128, f.LaunchBound())
	_, err := ParseOutside("k.ptx", []byte(text[:len(text)-3]))
	require.ErrorContains(t, err, "k.ptx:8:1: a function without its end, expected }")
}
