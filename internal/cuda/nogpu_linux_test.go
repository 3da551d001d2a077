package cuda

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
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
	here := must.Get(os.Getwd())
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
	static(t, binary)
	out, err := exec.Command(binary).CombinedOutput()
	if err != nil && strings.Contains(err.Error(), "exec format") {
		return // built for another machine
	}
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "ringo_nogpu")
}

// static wants a binary that needs neither a dynamic linker nor libraries.
func static(t *testing.T, binary string) {
	t.Helper()
	file := must.Get(elf.Open(binary))
	defer file.Close()
	for _, p := range file.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "it needs a dynamic linker")
		require.NotEqual(t, elf.PT_DYNAMIC, p.Type, "it needs libraries")
	}
}

// TestStatic: README's command makes a binary that runs where there is nothing else.
func TestStatic(t *testing.T) {
	tier.Heavy(t) // it compiles the command
	root, tree := t.TempDir(), filepath.Join("..", "..")
	readme := must.Get(os.ReadFile(filepath.Join(tree, "README.md")))
	args := regexp.MustCompile("`CGO_ENABLED=0 go build (.*)` makes a static").FindSubmatch(readme)
	require.NotNil(t, args, "README says how")
	binary := filepath.Join(root, "ringo")
	words := append([]string{"build", "-o", binary}, strings.Fields(string(args[1]))...)
	build := exec.Command(need.Tool(t, "go"), words...)
	build.Dir, build.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	static(t, binary)
	alone := exec.Command("/ringo", "explain", "allreduce", "-np", "4")
	alone.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if id := os.Geteuid(); id != 0 {
		alone.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		alone.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: id, Size: 1}}
	}
	if out, err = alone.CombinedOutput(); errors.Is(err, os.ErrPermission) {
		return // this user may not change the root
	}
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "on 4 ranks")
}
