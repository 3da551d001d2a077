//go:build linux && (amd64 || arm64) && !ringo_nogpu

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/test/must"
	"github.com/ringo-go/ringo/internal/test/need"
)

// libraries are the ones that build made, by their source and defines.
var libraries = map[string]string{}

var libraryDir string

func TestMain(m *testing.M) {
	status := m.Run()
	if libraryDir != "" {
		os.RemoveAll(libraryDir)
	}
	os.Exit(status)
}

// build compiles a C file of testdata to a library with gcc.
func build(t testing.TB, source string, defines ...string) string {
	t.Helper()
	gcc := need.Tool(t, "gcc")
	key := source + strings.Join(defines, " ")
	if lib, ok := libraries[key]; ok {
		return lib
	}
	if libraryDir == "" {
		dir := must.Get(os.MkdirTemp("", "cuda"))
		libraryDir = dir
	}
	lib := filepath.Join(libraryDir, fmt.Sprintf("%d.so", len(libraries)))
	args := []string{"-shared", "-fPIC", "-O1", "-Wno-unused", "-pthread", "-o", lib, filepath.Join("testdata", source)}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	out, err := exec.Command(gcc, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	libraries[key] = lib
	return lib
}

// A fake is the driver of testdata/fake.c and what it saw.
type fake struct {
	Driver
	lib dl.Library
}

func openFake(t testing.TB, defines ...string) fake {
	t.Helper()
	path := build(t, "fake.c", defines...)
	d := must.Get(Open(path))
	lib := must.Get(dl.Open(path))
	return fake{d, lib}
}

func saw[T any](t testing.TB, f fake, variable string) *T {
	t.Helper()
	p := must.Get(f.lib.Sym(variable))
	return *(**T)(unsafe.Pointer(&p))
}

type fakeLaunch struct {
	Count                        uint64
	Grid, Block                  [3]uint64
	Shared, Stream, Function     uint64
	Cooperative, HasParams, Size uint64
	Params                       [4096]byte
}

type fakeCalls struct{ ProcCalls, CaptureVariant uint64 }
