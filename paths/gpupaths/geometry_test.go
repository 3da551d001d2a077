package gpupaths

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Queues fit in the memory that they may take, and the blocks of ranks that share a GPU run side
// by side.
func TestGeometry(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 8, 16} {
		g := geometryOf(n, 1, 132)
		b := bridgeNet{shape: g.bridge}
		require.LessOrEqual(t, g.board.Bytes(), 64<<20, "%d ranks", n)
		require.LessOrEqual(t, g.pinned.Bytes(), 64<<20, "%d ranks", n)
		require.LessOrEqual(t, 2*(n-1)*b.laneSetBytes(), 64<<20, "%d ranks", n)
		shared := geometryOf(n, 4, 132)
		require.LessOrEqual(t, 4*shared.board.Near.Lanes, 132)
		require.LessOrEqual(t, 4*shared.pinned.Near.Lanes, 132)
	}
	require.Equal(t, 1, geometryOf(16, 16, 8).board.Near.Lanes)
}
