//go:build linux && (amd64 || arm64)

package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/libcuda/cudac"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestDriver builds the library and runs the tests of a CUDA driver on it, as if it were the real one.
func TestDriver(t *testing.T) {
	tier.Long(t)
	for _, tool := range []string{"gcc", "go", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			need.Missing(t, "gcc", err.Error())
		}
	}
	sources := map[string]string{}
	for _, source := range []string{"cuda.c", "missing.c", "libcuda.map", "../../scripts/libcuda"} {
		text, err := os.ReadFile(source) // go test runs anew when a file that it read has changed
		require.NoError(t, err)
		sources[source] = string(text)
	}
	var missing []string
	for _, m := range regexp.MustCompile(`M\((cu\w+)\)`).FindAllStringSubmatch(sources["missing.c"], -1) {
		missing = append(missing, m[1])
	}
	lib := filepath.Join(t.TempDir(), "libcuda.so.1")
	text, err := exec.Command("bash", "../../scripts/libcuda", lib).CombinedOutput()
	require.NoError(t, err, "%s", text)

	f, err := elf.Open(lib)
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
	require.ElementsMatch(t, append(append(cudac.Names(), missing...), "cuInit", "cuGetErrorName", "cuGetErrorString",
		"cuGetProcAddress", "cuGetProcAddress_v2", "cuGetExportTable"), got)

	cmd := exec.Command("go", "test", "-count=1", "-run", "TestConformance", "../../internal/cuda")
	cmd.Env = append(os.Environ(), "REQUIRE=cuda", "RINGO_EMULATE=2", "RINGO_CUDA_LIBRARY="+lib)
	text, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
}

// TestNull: a function that has nowhere to put its result says so, and a result that there is not has no name.
func TestNull(t *testing.T) {
	for _, tool := range []string{"bash", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			need.Missing(t, "gcc", err.Error())
		}
	}
	dir := t.TempDir()
	source, program, lib := filepath.Join(dir, "null.c"), filepath.Join(dir, "null"), filepath.Join(dir, "libcuda.so.1")
	require.NoError(t, os.WriteFile(source, []byte(`
#include <stdio.h>
int cuInit(unsigned), cuDeviceGetCount(int *), cuMemAlloc_v2(void *, unsigned long), cuGetErrorName(int, const char **);
int cuCtxGetDevice(int *), cuModuleGetFunction(void *, void *, const char *), cuStreamGetFlags(void *, unsigned *);
int main(void)
{
	const char *name = "";
	printf("%d %d %d %d %d %d;", cuInit(0), cuDeviceGetCount(0), cuMemAlloc_v2(0, 8), cuCtxGetDevice(0),
	       cuModuleGetFunction(0, 0, "f"), cuStreamGetFlags(0, 0));
	printf(" %d", cuGetErrorName(12345, &name));
	printf(" %d", name == 0);
	printf(" %d", cuGetErrorName(1, &name));
	printf(" %s\n", name);
}
`), 0o600))
	text, err := exec.Command("bash", "../../scripts/libcuda", lib).CombinedOutput()
	require.NoError(t, err, "%s", text)
	text, err = exec.Command("gcc", "-o", program, source, lib, "-Wl,-rpath,"+dir).CombinedOutput()
	require.NoError(t, err, "%s", text)
	c := exec.Command(program)
	c.Env = append(os.Environ(), "RINGO_EMULATE=1")
	text, err = c.Output()
	require.NoError(t, err)
	require.Equal(t, "0 1 1 1 1 1; 1 1 0 CUDA_ERROR_INVALID_VALUE\n", string(text))
}
