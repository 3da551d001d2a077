package main

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels/ptx"
)

// TestSources: the archive was made from the present sources, and any change of a source changes the checksum.
func TestSources(t *testing.T) {
	if _, err := os.Stat("../../cuda"); err != nil {
		t.Skip("the source is not here")
	}
	sum, err := sources("../../cuda", ptx.All())
	require.NoError(t, err)
	require.Equal(t, madeFrom("../modules.zip"), sum, "run go generate ./kernels/ptx")
	fewer, err := sources("../../cuda", ptx.All()[1:])
	require.NoError(t, err)
	require.NotEqual(t, sum, fewer)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../cuda")))
	copied, err := sources(dir, ptx.All())
	require.NoError(t, err)
	require.Equal(t, sum, copied)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ops.h"), []byte("// changed\n"), 0o666))
	changed, err := sources(dir, ptx.All())
	require.NoError(t, err)
	require.NotEqual(t, sum, changed)
}

// TestUpToDate compiles some of the sources anew and compares with what is
// committed. "gen -all" and git diff compare all of them, which CI does once a night.
func TestUpToDate(t *testing.T) {
	tier.Long(t) // it starts a compiler
	clang := need.Tool(t, "clang++-19")
	var some []ptx.Name
	for i, n := range tier.Some(5, ptx.All()) {
		if i%12 == 0 {
			some = append(some, n)
		}
	}
	texts, err := generate(clang, "../../cuda", some)
	require.NoError(t, err)
	for i, n := range some {
		want, err := ptx.Text(n)
		require.NoError(t, err)
		require.Equal(t, string(want), string(texts[i]), "%v is not up to date: run go generate ./kernels/ptx", n)
	}
}

func TestWithoutClang(t *testing.T) {
	_, err := generate("no-such-compiler", "../../cuda", ptx.All())
	require.ErrorContains(t, err, "no-such-compiler")
	require.ErrorContains(t, err, "install Debian's clang-19")
}

// TestArchiveIsKept: another version of Go compresses differently, so a file
// that holds the texts is not written again.
func TestArchiveIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "modules.zip")
	all := ptx.All()[:2]
	texts := [][]byte{[]byte("one"), []byte("two")}
	require.NoError(t, archive(file, all, texts, "x"))
	require.True(t, same(file, all, texts))
	old := time.Unix(1e9, 0)
	require.NoError(t, os.Chtimes(file, old, old))
	require.NoError(t, archive(file, all, texts, "x"))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, old, info.ModTime())

	texts[1] = []byte("three")
	require.False(t, same(file, all, texts))
	require.NoError(t, archive(file, all, texts, "x"))
	require.True(t, same(file, all, texts))
	require.False(t, same(file, all[:1], texts))
	require.Equal(t, "x", madeFrom(file))
	require.NoError(t, archive(file, all, texts, "y"))
	require.Equal(t, "y", madeFrom(file))
	require.NoError(t, os.WriteFile(file, []byte("no archive"), 0o666))
	require.Empty(t, madeFrom(file))
	require.False(t, same(file, all, texts))
}

// TestLike: texts are read as they were written: with models that have models, and shorter than a part, longer, or as
// long.
func TestLike(t *testing.T) {
	sum := ptx.Name{Type: "float32", Op: "sum", SM: 70}
	other, most := sum, sum
	other.Type, most.Type = "int32", "int8"
	all := []ptx.Name{most, other, sum}
	for _, n := range []int{1, ptx.PartBytes, 5*ptx.PartBytes + 7} {
		texts := make([][]byte, len(all))
		for i := range texts {
			for k := 0; len(texts[i]) < n+i; k++ {
				texts[i] = fmt.Appendf(texts[i], "add.s32 %%r%d, %%r%d;\n", k, k*(i+1)%977)
			}
			texts[i] = texts[i][:n+i]
		}
		file := filepath.Join(t.TempDir(), "modules.zip")
		require.NoError(t, archive(file, all, texts, "x"))
		require.True(t, same(file, all, texts), "%d bytes", n)
		z, err := zip.OpenReader(file)
		require.NoError(t, err)
		defer z.Close()
		require.Equal(t, []uint16{ptx.Like, ptx.Like, zip.Deflate},
			[]uint16{z.File[0].Method, z.File[1].Method, z.File[2].Method})
		z.File[0].CRC32++
		_, err = ptx.Read(&z.Reader, most)
		require.ErrorIs(t, err, zip.ErrChecksum)
	}
}

func TestTidy(t *testing.T) {
	text := "\n// by\n\n.version  \n\n// so\n.visible\n\tadd  \t%r1; // a\nL:    // loop\n}\n  // end\n"
	require.Equal(t, ".version\n\n.visible\nadd %r1;\nL:\n}\n", string(tidy([]byte(text))))
}
