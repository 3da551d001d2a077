package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The report of a run on GPUs has the Cost of its communicators.
func TestCost(t *testing.T) {
	r, out := measureHere(t, "allreduce", "-np", "1", "-g", "2", "-device", "emu", "-b", "8", "-e", "8")
	require.NotNil(t, r.Cost)
	require.Positive(t, r.Cost.Open)
	require.Positive(t, r.Cost.First)
	require.InDelta(t, 8, r.Cost.Memory, 4)
	require.Contains(t, out, "# "+r.Cost.String())
}
