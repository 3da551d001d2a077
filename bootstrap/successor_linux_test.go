package bootstrap

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The successor dies with the hub's process: the others do not wait for it.
func TestHeirDies(t *testing.T) {
	t.Parallel()
	ranks := startRanks(t, 5, "shrink")
	require.NoError(t, ranks[1].Process.Signal(syscall.SIGSTOP)) // so that it ends after rank 0
	began := time.Now()
	require.NoError(t, ranks[0].Process.Kill())
	require.NoError(t, ranks[1].Process.Kill())
	for r, p := range ranks[2:] {
		require.Contains(t, p.line(), " [2 3 4]", "rank %d", r+2)
	}
	require.Less(t, time.Since(began), 12*time.Second, "Regroup's wait is 15 s")
}
