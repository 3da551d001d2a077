package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChosen: the report names the algorithms, the sizes that they are chosen to, and the plan that chose them.
func TestChosen(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "my.plan")
	require.NoError(t, os.WriteFile(plan,
		[]byte("ringo plan 1\nallreduce 2 any 64 twoshot\nallreduce 2 any all oneshot\nallgather 2 any all ring\n"), 0o644))
	t.Setenv("RINGO_PLAN", plan)
	report, out := measureHere(t, "allreduce", "allgather", "sendrecv", "-device", "emu", "-g", "2", "-b", "8", "-e", "1K",
		"-f", "8", "-unchecked", "-d", "int8,float32")
	for _, want := range []string{"allreduce by twoshot to 64, oneshot (" + plan + ")", "allgather by ring (" + plan +
		")"} {
		require.Contains(t, report.Notes, want)
		require.Contains(t, out, "# "+want+"\n")
	}
	require.NotContains(t, out, "sendrecv by")
}
