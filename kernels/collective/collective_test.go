package collective

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDirect: every constant has a name of its own, all but OneShot have a window kernel, and copy engines write to a
// window.
func TestDirect(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range All() {
		require.True(t, d.Valid())
		require.NotEmpty(t, d.String())
		require.False(t, seen[d.String()], "%v twice", d)
		seen[d.String()] = true
		in, out := d.InWindow()
		require.Equal(t, d != OneShot, in || out, d)
		require.False(t, d.ByCopies() && !out, "%v: copies go to the peers' Out", d)
	}
	require.False(t, directs.Valid())
	require.Equal(t, "direct(9)", directs.String())
	require.True(t, Reduce.Reduces())
	require.False(t, AllGather.Reduces())
}
