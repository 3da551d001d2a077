// Package why has the tests of the packages below it, which read what a job that hangs has left.
package why

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// seeds is a number of seeds: fewer under the race detector, which has nothing to find where one goroutine judges.
func seeds(n uint64) uint64 {
	if tier.Race {
		return max(1, n/8)
	}
	return n
}

// file writes a file of that name into a folder of its own, and returns its path.
func file(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}
