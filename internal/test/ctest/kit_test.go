//go:build linux && (amd64 || arm64)

package ctest_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/libnccl/kit"
	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestKitFolder: each tree, and each set of Go's flags, has a folder of its own, and old ones are removed.
func TestKitFolder(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	a, b := t.TempDir(), t.TempDir()
	folder := func(tree string) string {
		f, err := kit.Folder(tree)
		require.NoError(t, err)
		require.DirExists(t, filepath.Join(f, "lib64"))
		return f
	}
	first, second := folder(a), folder(b)
	require.NotEqual(t, first, second)
	require.Equal(t, first, folder(a))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(a, link))
	require.Equal(t, first, folder(link))
	t.Setenv("GOFLAGS", "-tags=another")
	require.NotEqual(t, first, folder(a))
	old := time.Now().Add(-15 * 24 * time.Hour)
	require.NoError(t, os.Chtimes(first, old, old))
	folder(b)
	require.NoDirExists(t, first)
	require.DirExists(t, second)
	_, err := kit.Folder(filepath.Join(a, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestKitWithoutCache: where the user's cache cannot be written, or others can write it, the folder is a temporary one
// of this user's alone.
func TestKitWithoutCache(t *testing.T) {
	tree, temporary, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	open := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(open, "ringo", "kits"), 0o700))
	require.NoError(t, os.Chmod(filepath.Join(open, "ringo", "kits"), 0o777))
	t.Setenv("TMPDIR", temporary)
	for _, cache := range []string{filepath.Join(file, "below"), open, "relative"} {
		t.Setenv("XDG_CACHE_HOME", cache)
		f, err := kit.Folder(tree)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(f, temporary+"/ringo-kits-"), "%s: %s", cache, f)
	}
	all, err := filepath.Glob(temporary + "/ringo-kits-*")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, os.Chmod(all[0], 0o777))
	_, err = kit.Folder(tree)
	require.ErrorContains(t, err, "may be written by other users")
}

// TestKitLock: one process at a time builds, and one that ends in the middle keeps nobody waiting.
func TestKitLock(t *testing.T) {
	folder := t.TempDir()
	unlock, err := kit.Lock(t.Context(), folder)
	require.NoError(t, err)
	got := make(chan func(), 1)
	go func() {
		second, err := kit.Lock(t.Context(), folder)
		if err == nil {
			got <- second
		}
		close(got)
	}()
	select {
	case <-got:
		require.Fail(t, "two have the lock")
	case <-time.After(100 * time.Millisecond):
	}
	unlock()
	second := <-got
	require.NotNil(t, second)
	second()
}

// TestScriptsAnywhere builds all libraries in a copy of the tree, and has a program use them. The name of the copy's
// folder has what shells and compilers split at.
func TestScriptsAnywhere(t *testing.T) {
	tier.Heavy(t)
	gcc, bash, git := need.Tool(t, "gcc"), need.Tool(t, "bash"), need.Tool(t, "git")
	tree := filepath.Join(t.TempDir(), `it's a "tree", `)
	require.NoError(t, os.Mkdir(tree, 0o755))
	list, err := exec.Command(git, "-C", ctest.Root(t), "ls-files", "-z").Output()
	if err != nil {
		t.Skip("the sources are no checkout of git")
	}
	for file := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(ctest.Root(t), file))
		if err != nil {
			continue // removed, and not committed
		}
		require.NoError(t, os.MkdirAll(filepath.Join(tree, filepath.Dir(file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(tree, file), text, 0o755))
	}
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -trimpath") // what is compiled is the same in any folder
	require.NoError(t, ctest.Run(bash, filepath.Join(tree, "scripts", "cuda-kit"), filepath.Join(tree, "build", "cuda")))
	lib := filepath.Join(tree, "build", "cuda", "lib64")
	program := filepath.Join(tree, "plain")
	require.NoError(t, ctest.Run(gcc, "-I"+filepath.Join(tree, "build", "cuda", "include"), "-o", program,
		filepath.Join(tree, "cmd", "libcudart", "testdata", "plain.c"), filepath.Join(lib, "libcudart.so.12"),
		filepath.Join(lib, "libcuda.so.1"), filepath.Join(lib, "libnccl.so.2")))
	cmd := exec.Command(program)
	cmd.Env = append(ctest.OnGPUs(2), "LD_LIBRARY_PATH="+lib)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Contains(t, string(text), "all is right")
	left, err := filepath.Glob(filepath.Join(lib, ".build*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
