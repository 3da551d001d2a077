// Package examples tests all examples.
package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

// An example can be copied out: it and its tests build in another module, so they use only what the packages of this
// module promise.
func TestCopiedOut(t *testing.T) {
	tool := need.Tool(t, "go")
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Skip("the source is not here")
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	_, needs, _ := strings.Cut(string(mod), "\n") // the versions of the modules that this module needs
	list, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	dir, found := t.TempDir(), map[string]bool{}
	for _, file := range list {
		name := filepath.Dir(file)
		found[name] = true
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), text, 0o644))
	}
	for _, name := range []string{"elastic", "object", "ongpu", "schedule", "train"} {
		require.True(t, found[name], name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/copied\n"+needs+
		"\nrequire github.com/ringo-go/ringo v0.0.0\n\nreplace github.com/ringo-go/ringo => "+root+"\n"), 0o644))
	// The compiler has built the same files here. What may differ there is what they may import.
	cmd := exec.CommandContext(t.Context(), tool, "list", "-deps", "-test", "./...")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "\nexample.com/copied/object\n")
}
