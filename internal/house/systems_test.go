package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/need"
)

// Faults that only some systems, or only tests, have are found.
func TestSystems(t *testing.T) {
	need.Tool(t, "go")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module example.com/x\n\ngo 1.26\n",
		"x.go":       "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(large) }\n",
		"x_386.go":   "package main\n\nconst large = 1 << 31\n",
		"x_arm64.go": "package main\n\nconst large = 1 << 31\n",
		"x_test.go":  "package main\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { main(1) }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	n, err := check(dir, "linux/arm64", false)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = check(dir, "linux/386", false)
	require.ErrorContains(t, err, "x.go:5:23: cannot use large")
	_, err = check(dir, "linux/arm", false)
	require.ErrorContains(t, err, "undefined: large")
	_, err = check(dir, "linux/arm64", true)
	require.ErrorContains(t, err, "x_test.go:5:33: too many arguments")
	_, err = check(dir, "linux", false)
	require.ErrorContains(t, err, `"linux" is no GOOS/GOARCH`)
	text, err := systems(dir, []string{"linux/arm64", "linux/386"}, false)
	require.Equal(t, "linux/arm64: 1 packages\n", text)
	require.ErrorContains(t, err, "linux/386: ")
	_, err = systems(dir, nil, false)
	require.ErrorContains(t, err, "want GOOS/GOARCH")
}
