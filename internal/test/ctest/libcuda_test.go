//go:build linux && (amd64 || arm64)

package ctest_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/libcuda/cudac"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/cudatest"
)

// TestDriver runs the tests of a CUDA driver on the library, as if it were the real one, in a process of their own.
func TestDriver(t *testing.T) {
	if lib := os.Getenv("CTEST_DRIVER"); lib != "" {
		cudatest.Run(t, func(t testing.TB) cuda.Driver {
			d, err := cuda.Open(lib)
			require.NoError(t, err)
			return d
		})
		return
	}
	lib := ctest.Driver(t)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-test.run=^TestDriver$", "-test.v")
	cmd.Env = append(os.Environ(), "CTEST_DRIVER="+lib, "RINGO_EMULATE=2")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Contains(t, string(text), "--- PASS: TestDriver/")
}

// TestNamesOfDriver wants exactly the names of package cudac, and those that are not carried out.
func TestNamesOfDriver(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(ctest.Root(t), "cmd", "libcuda", "missing.c"))
	require.NoError(t, err)
	want := append(cudac.Names(), "cuInit", "cuGetErrorName", "cuGetErrorString", "cuGetProcAddress",
		"cuGetProcAddress_v2", "cuGetExportTable", "cuLaunchKernelEx_ptsz", "ringo_cuda_failed", "ringo_cuda_comm_failed",
		"ringo_cuda_moves")
	for _, m := range regexp.MustCompile(`M\((cu\w+)\)`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, m[1])
	}
	source, err = os.ReadFile(filepath.Join(ctest.Root(t), "cmd", "libcuda", "cuda.c"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`\b([ZY])\(\d+, (?:\d+, )?(cu\w+)`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, m[2]+map[string]string{"Z": "_ptsz", "Y": "_ptds"}[m[1]])
	}
	f, err := elf.Open(ctest.Driver(t))
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	var got []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			got = append(got, s.Name)
		}
	}
	require.ElementsMatch(t, want, got)
}

// TestNull: a function that has nowhere to put its result says so, and a result that there is not has no name.
func TestNull(t *testing.T) {
	source := filepath.Join(t.TempDir(), "null.c")
	require.NoError(t, os.WriteFile(source, []byte(`
#include <stdio.h>
int cuInit(unsigned), cuDeviceGetCount(int *), cuMemAlloc_v2(void *, unsigned long), cuGetErrorName(int, const char **);
int cuCtxGetDevice(int *), cuModuleGetFunction(void *, void *, const char *), cuStreamGetFlags(void *, unsigned *);
int main(void)
{
	const char *name = "";
	int initialized = cuInit(0); // comes first
	printf("%d %d %d %d %d %d;", initialized, cuDeviceGetCount(0), cuMemAlloc_v2(0, 8), cuCtxGetDevice(0),
	       cuModuleGetFunction(0, 0, "f"), cuStreamGetFlags(0, 0));
	printf(" %d", cuGetErrorName(12345, &name));
	printf(" %d", name == 0);
	printf(" %d", cuGetErrorName(1, &name));
	printf(" %s\n", name);
}
`), 0o600))
	c := exec.Command(ctest.C(t, "null", source, ctest.Driver(t)))
	c.Env = append(os.Environ(), "RINGO_EMULATE=1")
	text, err := c.Output()
	require.NoError(t, err)
	require.Equal(t, "0 1 1 1 1 1; 1 1 0 CUDA_ERROR_INVALID_VALUE\n", string(text))
}
