package cuda

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestBuildWithoutGPU builds a program that opens the driver, with the tag that
// leaves it out: it imports no purego, is static, and says why it cannot.
func TestBuildWithoutGPU(t *testing.T) {
	tier.Heavy(t) // it compiles all that the driver imports without cgo
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command: ", err)
	}
	dir, err := os.MkdirTemp("testdata", "nogpu") // within the module
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(`package main

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
)

func main() {
	_, err := cuda.Open("")
	fmt.Println(err)
}
`), 0o644))
	goCommand := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}

	deps := goCommand("list", "-deps", "-tags", "ringo_nogpu", "./"+dir)
	require.NotContains(t, deps, "purego")
	deps = goCommand("list", "-deps", "./"+dir)
	require.Contains(t, deps, "ebitengine/purego", "and with it otherwise")

	program := filepath.Join(t.TempDir(), "program")
	goCommand("build", "-tags", "ringo_nogpu", "-o", program, "./"+dir)
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer file.Close()
	for _, p := range file.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "it needs a dynamic linker")
		require.NotEqual(t, elf.PT_DYNAMIC, p.Type, "it needs libraries")
	}
	out, err := exec.Command(program).CombinedOutput()
	if err != nil && strings.Contains(err.Error(), "exec format") {
		return // built for another machine
	}
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "ringo_nogpu")
}
