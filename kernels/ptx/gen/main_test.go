package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/kernels/ptx"
)

// TestUpToDate compiles some of the sources anew and compares with what is
// committed. CI compares all of them, by go generate.
func TestUpToDate(t *testing.T) {
	const clang = "clang++-19"
	if _, err := exec.LookPath(clang); err != nil {
		gputest.Missing(t, "clang", "clang-19 of Debian, to compare the PTX with its sources: "+err.Error())
	}
	var some []ptx.Name
	for i, n := range ptx.All() {
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
	require.NoError(t, archive(file, all, texts))
	require.True(t, same(file, all, texts))
	old := time.Unix(1e9, 0)
	require.NoError(t, os.Chtimes(file, old, old))
	require.NoError(t, archive(file, all, texts))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, old, info.ModTime())

	texts[1] = []byte("three")
	require.False(t, same(file, all, texts))
	require.NoError(t, archive(file, all, texts))
	require.True(t, same(file, all, texts))
	require.False(t, same(file, all[:1], texts))
	require.NoError(t, os.WriteFile(file, []byte("no archive"), 0o666))
	require.False(t, same(file, all, texts))
}

func TestTidy(t *testing.T) {
	text := "\n// by\n\n.version  \n\n// so\n.visible\n\tadd; // a\nL:    // loop\n}\n  // end\n"
	require.Equal(t, ".version\n\n.visible\n\tadd;\nL:\n}\n", string(tidy([]byte(text))))
}
