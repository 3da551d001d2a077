//go:build linux && (amd64 || arm64) && !ringo_nogpu

package plugin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// folderVariable is where a second process finds what the first one has built.
const folderVariable = "RINGO_TEST_PLUGIN_FOLDER"

func TestMain(m *testing.M) {
	if os.Getenv(folderVariable) != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "plugin")
	if err != nil {
		panic(err)
	}
	os.Setenv(folderVariable, dir)
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

var building sync.Mutex

// build compiles testdata/net.c, once for each list of definitions.
func build(tb testing.TB, defines ...string) string {
	tb.Helper()
	tier.Long(tb) // it starts a compiler
	building.Lock()
	defer building.Unlock()
	gcc := need.Tool(tb, "gcc")
	file := filepath.Join(os.Getenv(folderVariable), "libnccl-net-"+strings.Join(defines, "-")+".so")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	args := []string{"-shared", "-fPIC", "-Wall", "-Werror", "-Wno-unused", "-o", file + ".new", "testdata/net.c"}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	out, err := exec.Command(gcc, args...).CombinedOutput()
	require.NoError(tb, err, "%s", out)
	require.NoError(tb, os.Rename(file+".new", file))
	return file
}

// A fake is the plugin of testdata, loaded into this process for one test.
type fake struct {
	file string
	lib  dl.Library
}

// newFake copies the plugin, so that it is loaded anew.
func newFake(tb testing.TB, defines ...string) *fake {
	tb.Helper()
	b, err := os.ReadFile(build(tb, defines...))
	require.NoError(tb, err)
	f := &fake{file: filepath.Join(tb.TempDir(), "libnccl-net-test.so")}
	require.NoError(tb, os.WriteFile(f.file, b, 0o755))
	f.lib, err = dl.Open(f.file)
	require.NoError(tb, err)
	return f
}

func (f *fake) call(tb testing.TB, name string, args ...uintptr) int {
	tb.Helper()
	fn, err := f.lib.Sym("net_test_" + name)
	require.NoError(tb, err)
	return int(int32(dl.Call(fn, args...)))
}

// set has a function of the plugin fail after so many calls, and everything answer "not yet"
// so many times.
func (f *fake) set(tb testing.TB, call string, after, delay int) {
	b := append([]byte(call), 0)
	f.call(tb, "set", addr(&b[0]), uintptr(after), uintptr(delay))
}

// lie has a function of the plugin succeed and return an impossible value.
func (f *fake) lie(tb testing.TB, call string, what int) {
	b := append([]byte(call), 0)
	f.call(tb, "lie", addr(&b[0]), uintptr(what))
}

// clean requires that the plugin was not misused, and that all objects but so many were given
// back.
func (f *fake) clean(tb testing.TB, objects int) {
	tb.Helper()
	require.Zero(tb, f.call(tb, "faults"), "wrong uses of the plugin, see standard error")
	require.Equal(tb, objects, f.call(tb, "objects"), "what is still open in the plugin")
}

// contexts is how many objects a library itself keeps open.
func contexts(version int) int {
	if version >= 11 {
		return 1
	}
	return 0
}

func (f *fake) load(tb testing.TB) *Library {
	tb.Helper()
	l, err := Load(f.file, nil)
	require.NoError(tb, err)
	return l
}

func open(l *Library) transporttest.Open {
	return func(_ testing.TB, cfg transport.Config) transport.Transport { return New(cfg, l, Options{}) }
}

func version(n int) string { return fmt.Sprintf("VERSION=%d", n) }
