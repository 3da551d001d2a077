//go:build unix

package internal_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/given"
)

// Only regular files that are not too long are read; the error names the file.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	b, err := given.Read(file)
	require.NoError(t, err)
	require.Equal(t, "text", string(b))

	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	long := filepath.Join(dir, "long")
	require.NoError(t, os.WriteFile(long, nil, 0o600))
	require.NoError(t, os.Truncate(long, given.Most+1))
	for name, want := range map[string]string{
		pipe: "not a regular file", dir: "not a regular file", "/dev/zero": "not a regular file",
		long: "longer than 1024 MiB", filepath.Join(dir, "none"): "no such file",
	} {
		_, err := given.Read(name)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, name)
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"rank 3, über":        "rank 3, über",
		"\x1b]0;pwn\x07":      `\x1b]0;pwn\a`,
		"a\nb\tc":             `a\nb\tc`,
		"half\xff":            `half` + "\uFFFD",
		"\u202eright-to-left": `\u202eright-to-left`,
	} {
		require.Equal(t, want, given.Printable(text))
	}
}
