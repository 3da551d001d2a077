//go:build linux && (amd64 || arm64) && !ringo_nogpu

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/must"
)

// loaded are the files in the process's map that are of CUDA or the driver.
func loaded(t *testing.T) []string {
	maps := must.Get(os.ReadFile("/proc/self/maps"))
	var files []string
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		if name := filepath.Base(f[5]); regexp.MustCompile(`^libcu|nvidia|^libnv`).MatchString(name) {
			files = append(files, name)
		}
	}
	return files
}

const openVariable = "CUDA_TEST_OPEN"

// TestNothingIsLoadedBeforeOpen looks at the map of a fresh process, which has
// this package, and so purego, in it, before and after Open.
func TestNothingIsLoadedBeforeOpen(t *testing.T) {
	if path := os.Getenv(openVariable); path != "" {
		fmt.Println("before:", loaded(t))
		must.Get(Open(path))
		fmt.Println("after:", loaded(t)[0])
		return
	}
	lib := must.Get(os.ReadFile(build(t, "fake.c")))
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	require.NoError(t, os.WriteFile(path, lib, 0o755))
	exe := must.Get(os.Executable())
	cmd := exec.Command(exe, "-test.run=^TestNothingIsLoadedBeforeOpen$", "-test.v")
	cmd.Env = append(os.Environ(), openVariable+"="+path)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "before: []\n")
	require.Contains(t, string(out), "after: libcuda.so.1\n")
}
