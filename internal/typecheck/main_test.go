package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":     "module example.com/x\n\ngo 1.26\n",
		"x.go":       "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(large) }\n",
		"x_386.go":   "package main\n\nconst large = 1 << 31\n",
		"x_arm64.go": "package main\n\nconst large = 1 << 31\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	n, err := check(dir, "linux/arm64")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = check(dir, "linux/386")
	require.ErrorContains(t, err, "x.go:5:23: cannot use large")
	_, err = check(dir, "linux/arm")
	require.ErrorContains(t, err, "undefined: large")
	_, err = check(dir, "linux")
	require.ErrorContains(t, err, `"linux" is no GOOS/GOARCH`)
}
