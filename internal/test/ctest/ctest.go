//go:build linux && (amd64 || arm64)

// Package ctest builds programs in C, CUDA and Go for tests, and the libraries that they use. What is built stays in
// the user's cache, in a folder that all test processes of a tree share, until its sources change.
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

	"github.com/ringo-go/ringo/cmd/libnccl/kit"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// built are the files that this process has built or found up to date, with their errors.
var built struct {
	sync.Mutex
	folder string
	errs   map[string]error
}

// Library gives the file of libnccl.so.2.
func Library(t testing.TB) string {
	t.Helper()
	return script(t, "libnccl", "lib64/libnccl.so.2", "./cmd/libnccl")
}

// Driver gives the file of the emulated GPUs' libcuda.so.1. Tests with it belong to the full tier, for the emulator is
// compiled a second time for it.
func Driver(t testing.TB) string {
	t.Helper()
	tier.Heavy(t)
	return script(t, "libcuda", "lib64/libcuda.so.1", "./cmd/libcuda")
}

// Kit gives the folder of scripts/cuda-kit: a compiler for CUDA, its headers, and all libraries. Its tests belong to
// the full tier, as those of Driver.
func Kit(t testing.TB) string {
	t.Helper()
	tier.Heavy(t)
	return filepath.Dir(script(t, "cuda-kit", "lib64", "./cmd/libnccl", "./cmd/libcuda"))
}

// Ringo gives the command.
func Ringo(t testing.TB) string {
	t.Helper()
	return Go(t, "ringo", "./cmd/ringo")
}

// script runs a script of the tree if Go's packages, or what else the scripts use, have changed since.
func script(t testing.TB, name, result string, packages ...string) string {
	t.Helper()
	tier.Long(t)
	tools(t, "gcc", "go", "bash")
	return once(t, result, func(out string) error {
		return ifChanged(t, out, append(packages, scripts...), func() error {
			return kit.Build(t.Context(), Root(t), name, built.folder)
		})
	})
}

// scripts are the files that scripts read beside Go's packages.
var scripts = []string{"cmd/libnccl/*.*", "cmd/libcuda/*.*", "cmd/libcudart/*/*", "cmd/libcudart/include/*/*",
	"cmd/libcudart/include/*/*/*", "scripts/lib*", "scripts/cuda-kit"}

// Go builds a program in Go: a package of this module, or a file that belongs to it wherever it lies.
func Go(t testing.TB, name, source string) string {
	t.Helper()
	tier.Long(t)
	tools(t, "go")
	return once(t, name, func(out string) error {
		if strings.HasSuffix(source, ".go") { // at one place, so that Go knows it again
			text, err := os.ReadFile(source)
			if err != nil {
				return err
			}
			source = out + ".go"
			if old, err := os.ReadFile(source); err != nil || string(old) != string(text) {
				if err := os.WriteFile(source, text, 0o600); err != nil {
					return err
				}
			}
		}
		return ifChanged(t, out, []string{source}, func() error {
			return run(Root(t), "go", "build", "-o", out, source)
		})
	})
}

// Program compiles a program of cmd/libnccl/testdata, and links it with the library, and for GPUs with the driver.
func Program(t testing.TB, name string, gpus bool) string {
	t.Helper()
	libs, out := []string{Library(t)}, name
	if gpus {
		libs, out = append(libs, Driver(t), "-DGPUS"), name+"-gpus"
	}
	return C(t, out, filepath.Join(Root(t), "cmd", "libnccl", "testdata", name+".c"), libs...)
}

// C compiles a program or, by -shared, a library, with the headers of cmd/libnccl and programs beside it.
func C(t testing.TB, name, source string, args ...string) string {
	t.Helper()
	tools(t, "gcc")
	dir := filepath.Join(Root(t), "cmd", "libnccl")
	args = append([]string{"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-I" + dir}, args...)
	args = append(args, "-Wl,-rpath,"+filepath.Join(folder(t), "lib64"), "-lpthread", "-ldl", "-lm")
	return once(t, name, func(out string) error {
		return ifOther(t, out, source, headers, args, func(out string) error {
			return Run("gcc", append([]string{"-o", out, source}, args...)...)
		})
	})
}

// headers are the files that programs in C include.
var headers = []string{"cmd/libnccl/*.h", "cmd/libnccl/testdata/*.h", "cmd/libnccl/testdata/names.txt"}

// toolkit is what the kit's compiler consists of.
var toolkit = []string{"cmd/libcudart/bin/*", "cmd/libcudart/include/*", "cmd/libcudart/include/*/*",
	"cmd/libcudart/include/*/*/*"}

// CUDA compiles a program of examples/cuda or of a test's testdata by the kit's nvcc. The options are part of its name.
func CUDA(t testing.TB, source string, options ...string) string {
	t.Helper()
	tools(t, "clang++-19")
	nvcc := filepath.Join(Kit(t), "bin", "nvcc")
	name := strings.Join(append([]string{strings.TrimSuffix(filepath.Base(source), ".cu")}, options...), "")
	return once(t, strings.ReplaceAll(name, "/", "_"), func(out string) error {
		return ifOther(t, out, source, toolkit, options, func(out string) error {
			return Run(nvcc, append([]string{"-std=c++17", "-o", out, source}, options...)...)
		})
	})
}

// folder gives the folder of all that is built.
func folder(t testing.TB) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.folder == "" {
		dir, err := kit.Folder(Root(t))
		require.NoError(t, err)
		built.folder, built.errs = dir, map[string]error{}
	}
	return built.folder
}

// tools skips the test without a tool. Each is looked for once.
func tools(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, here := found.Load(name); !here {
			need.Tool(t, name)
			found.Store(name, true)
		}
	}
}

var found sync.Map

// once builds a file, if this process has not done so yet. No other process builds meanwhile.
func once(t testing.TB, file string, build func(out string) error) string {
	t.Helper()
	dir := folder(t)
	built.Lock()
	defer built.Unlock()
	out := filepath.Join(dir, file)
	err, done := built.errs[file]
	if !done {
		unlock, errLock := kit.Lock(t.Context(), dir)
		require.NoError(t, errLock)
		defer unlock()
		err = build(out)
		built.errs[file] = err
	}
	require.NoError(t, err)
	return out
}

// Root is the repository's folder.
func Root(t testing.TB) string {
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
func Run(name string, args ...string) error { return run("", name, args...) }

func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
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
