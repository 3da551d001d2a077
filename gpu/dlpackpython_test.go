//go:build linux && (amd64 || arm64) && !ringo_nogpu

package gpu_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestDLPackPython: PyTorch and NumPy use Go's memory as arrays, and Go uses theirs.
func TestDLPackPython(t *testing.T) {
	tier.Heavy(t)
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if python == "" && exec.Command(name, "-c", "import torch, numpy").Run() == nil {
			python = name
		}
	}
	if python == "" {
		need.Missing(t, "torch",
			"there is no python3 with torch and numpy: apt-get install --no-install-recommends python3-torch python3-numpy")
	}
	so := filepath.Join(t.TempDir(), "arrays.so")
	text, err := exec.Command("go", "build", "-buildmode=c-shared", "-o", so, "./dlpack/testdata/python").CombinedOutput()
	require.NoError(t, err, "%s", text)
	text, err = exec.Command(python, "dlpack/testdata/python/arrays.py", so).CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Equal(t, "ok\n", string(text))
}
