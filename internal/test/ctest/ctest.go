//go:build linux && (amd64 || arm64)

// Package ctest builds programs in C that use libnccl.so.2, for tests. Their sources are in cmd/libnccl/testdata.
package ctest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/ringo-go/ringo/cmd/libnccl/capi" // go test notices when what is built here changes
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// built are the files built so far, each once, with their errors.
var built struct {
	sync.Mutex
	dir  string
	errs map[string]error
}

// Clean removes all built files. It is for TestMain.
func Clean() {
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
}

// Library gives the file of libnccl.so.2, Driver that of the emulated GPUs' libcuda.so.1.
func Library(t testing.TB) string {
	t.Helper()
	return once(t, "libnccl.so.2",
		func(out string) error { return Run("bash", filepath.Join(root(t), "scripts", "libnccl"), out) })
}

func Driver(t testing.TB) string {
	t.Helper()
	return once(t, "libcuda.so.1",
		func(out string) error { return Run("bash", filepath.Join(root(t), "scripts", "libcuda"), out) })
}

// Kit gives the folder of scripts/cuda-kit: a compiler for CUDA, its headers, and all libraries.
func Kit(t testing.TB) string {
	t.Helper()
	return once(t, "cuda",
		func(out string) error { return Run("bash", filepath.Join(root(t), "scripts", "cuda-kit"), out) })
}

// CUDA compiles a program of examples/cuda or of a test's testdata by the kit's nvcc. The options are part of its name.
func CUDA(t testing.TB, source string, options ...string) string {
	t.Helper()
	if _, err := exec.LookPath("clang++-19"); err != nil {
		need.Missing(t, "clang", err.Error())
	}
	kit := Kit(t)
	name := strings.Join(append([]string{strings.TrimSuffix(filepath.Base(source), ".cu")}, options...), "")
	return once(t, strings.ReplaceAll(name, "/", "_"), func(out string) error {
		return Run(filepath.Join(kit, "bin", "nvcc"), append([]string{"-std=c++17", "-o", out, source}, options...)...)
	})
}

// Program compiles a program, and links it with the library, and for GPUs with the driver.
func Program(t testing.TB, name string, gpus bool) string {
	t.Helper()
	libs, out := []string{Library(t)}, name
	if gpus {
		libs, out = append(libs, Driver(t), "-DGPUS"), name+"-gpus"
	}
	dir := filepath.Join(root(t), "cmd", "libnccl")
	return once(t, out, func(out string) error {
		return Run("gcc", append([]string{"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-I" + dir, "-o", out,
			filepath.Join(dir, "testdata", name+".c"),
			"-Wl,-rpath," + filepath.Dir(libs[0]), "-lpthread", "-ldl", "-lm"}, libs...)...)
	})
}

// once builds a file, if it was not built before.
func once(t testing.TB, file string, build func(out string) error) string {
	t.Helper()
	tier.Long(t)
	for _, tool := range []string{"gcc", "go", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			need.Missing(t, "gcc", err.Error())
		}
	}
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		var err error
		built.dir, err = os.MkdirTemp("", "libnccl")
		require.NoError(t, err)
		built.errs = map[string]error{}
		notice(t)
	}
	out := filepath.Join(built.dir, file)
	err, done := built.errs[file]
	if !done {
		err = build(out)
		built.errs[file] = err
	}
	require.NoError(t, err)
	return out
}

// notice reads the sources that no Go package imports: go test keeps the result of a test only until a file that the
// test has read changes.
func notice(t testing.TB) {
	for _, pattern := range []string{"cmd/libnccl/*.*", "cmd/libnccl/testdata/*.[ch]", "cmd/libcuda/*.*",
		"cmd/libcudart/*/*", "cmd/libcudart/include/*/*", "cmd/libcudart/include/*/*/*", "scripts/lib*",
		"scripts/cuda-kit", "examples/cuda/*"} {
		files, err := filepath.Glob(filepath.Join(root(t), pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, f := range files {
			info, err := os.Stat(f)
			require.NoError(t, err)
			if info.IsDir() {
				continue
			}
			_, err = os.ReadFile(f)
			require.NoError(t, err)
		}
	}
}

// root is the repository's folder.
func root(t testing.TB) string {
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	require.Fail(t, "no go.mod above the test")
	return ""
}

// Run runs a command, whose output is in the error.
func Run(name string, args ...string) error {
	if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(append([]string{name}, args...), " "), err, text)
	}
	return nil
}

// OnHost is this process's environment for programs that use host memory, OnGPUs for programs that use emulated GPUs,
// as many as given.
func OnHost() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "RINGO_") || strings.HasPrefix(v, "NCCL_")
	})
	return append(env, "RINGO_HOST=1", "RINGO_TIMEOUT=60s", "RINGO_JOIN_TIMEOUT=60s")
}

func OnGPUs(n int) []string { return append(OnHost(), "RINGO_HOST=0", fmt.Sprint("RINGO_EMULATE=", n)) }
