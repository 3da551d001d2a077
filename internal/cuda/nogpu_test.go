package cuda

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestBuildWithoutGPU builds a program that opens the driver, with the tag that
// leaves it out: it imports no purego, is static, and says why it cannot.
func TestBuildWithoutGPU(t *testing.T) {
	tier.Heavy(t) // it compiles all that the driver imports without cgo
	command := need.Tool(t, "go")
	temp := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(temp, "main.go"), []byte(`package main

import (
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
)

func main() {
	_, err := cuda.Open("")
	fmt.Println(err)
}
`), 0o644))
	// The program is within the module, where nothing is written.
	here, err := os.Getwd()
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(here, "testdata", "nogpu", "main.go"): filepath.Join(temp, "main.go")}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(temp, "overlay.json"), overlay, 0o644))
	const program = "./testdata/nogpu"
	goCommand := func(args ...string) string {
		args = slices.Insert(args, 1, "-overlay", filepath.Join(temp, "overlay.json"))
		cmd := exec.Command(command, args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=-mod=mod")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}

	deps := goCommand("list", "-deps", "-tags", "ringo_nogpu", program)
	require.NotContains(t, deps, "purego")
	deps = goCommand("list", "-deps", program)
	require.Contains(t, deps, "ebitengine/purego", "and with it otherwise")

	binary := filepath.Join(temp, "program")
	goCommand("build", "-tags", "ringo_nogpu", "-o", binary, program)
	file, err := elf.Open(binary)
	require.NoError(t, err)
	defer file.Close()
	for _, p := range file.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "it needs a dynamic linker")
		require.NotEqual(t, elf.PT_DYNAMIC, p.Type, "it needs libraries")
	}
	out, err := exec.Command(binary).CombinedOutput()
	if err != nil && strings.Contains(err.Error(), "exec format") {
		return // built for another machine
	}
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "ringo_nogpu")
}
