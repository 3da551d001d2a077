package gpupaths

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/paths"
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

// Ranks that share a GPU are counted by the GPU's identity, not by its name.
func TestSharing(t *testing.T) {
	ranks := func(ids ...string) (all []paths.Profile) {
		for _, id := range ids {
			all = append(all, paths.Profile{GPU: "the same name", GPUID: id})
		}
		return all
	}
	require.Equal(t, 1, sharing(ranks("a", "b", "c")))
	require.Empty(t, sharingNotes(ranks("a", "b", "c")))
	require.Equal(t, 2, sharing(ranks("a", "b", "a", "b", "c")))
	require.Contains(t, sharingNotes(ranks("a", "b", "a"))[0], "up to 2 ranks share a GPU")
}
