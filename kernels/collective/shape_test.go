package collective

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNeeds: the collectives' needs, as Reduces, InWindow and ByCopies report them.
func TestNeeds(t *testing.T) {
	for d, want := range map[Direct][4]bool{ // reduces; in, out in a window; by copies
		OneShot: {true, false, false, false}, TwoShot: {true, true, true, true}, ReduceScatter: {true, true, false, false},
		Reduce:    {true, true, true, false},
		AllGather: {false, false, true, true}, AllToAll: {false, false, true, true}, Broadcast: {false, false, true, true},
		Gather: {false, true, false, false}, Scatter: {false, false, true, true},
	} {
		in, out := d.InWindow()
		require.Equal(t, want, [4]bool{d.Reduces(), in, out, d.ByCopies()}, "%v", d)
	}
	require.Len(t, All(), 9)
	require.Equal(t, Scatter, All()[8])
	require.False(t, Direct(200).Valid() || directs.ByCopies())
}

// TestMessages: lengths of messages and numbers of lines, to the byte.
func TestMessages(t *testing.T) {
	for bytes, want := range map[int]int{0: 1, 1: 1, 120: 1, 121: 2, 240: 2, 241: 3} {
		require.Equal(t, want, Lines(bytes), bytes)
	}
	for _, c := range []struct{ ranks, bytes, two int }{{2, 0, 0}, {2, 32, 16}, {2, 33, 32}, {3, 48, 16}, {3, 49, 32},
		{8, 1 << 20, 1 << 17}} {
		require.Equal(t, c.two, TwoShot.Message(c.ranks, c.bytes), c)
		require.Equal(t, c.bytes, OneShot.Message(c.ranks, c.bytes))
	}
	for ranks, want := range map[int]int{1: 512 << 10, 2: 512 << 10, 3: 256 << 10, 4: 174752, 8: 74896} {
		require.Equal(t, want, TornMessage(ranks), ranks)
	}
}

// TestDirectShape: the grids of direct kernels change at these numbers of lines.
func TestDirectShape(t *testing.T) {
	for _, c := range []struct {
		d                             Direct
		ranks, lines, blocks, threads int
	}{
		{OneShot, 2, 1, 1, 32}, {OneShot, 2, 4, 1, 32}, {OneShot, 2, 5, 1, 64}, {OneShot, 2, 16, 1, 128},
		{OneShot, 2, 17, 2, 128}, {OneShot, 2, 32, 2, 128}, {OneShot, 2, 33, 3, 128},
		{OneShot, 2, 2048, 128, 128}, {OneShot, 4, 2049, 65, 256}, {OneShot, 4, 4096, 128, 256}, {OneShot, 4, 4097, 128, 128},
		{OneShot, 2, 4097, 65, 512}, {OneShot, 2, 1 << 20, 128, 512},
		{TwoShot, 4, 4096, 128, 256}, {TwoShot, 4, 4097, 96, 128}, {TwoShot, 4, 12000, 96, 128},
		{TwoShot, 4, 12001, 128, 256}, {OneShot, 4, 12000, 128, 128}, {OneShot, 4, 12001, 128, 256},
		{TwoShot, 2, 12001, 128, 512},
	} {
		blocks, threads := DirectShape(c.d, c.ranks, c.lines)
		require.Equal(t, []int{c.blocks, c.threads}, []int{blocks, threads}, "%+v", c)
	}
}

// TestWindowShape: the grids of window kernels have as many blocks as there is work for, then larger tiles.
func TestWindowShape(t *testing.T) {
	const v = 16 * MaxThreads
	for _, c := range []struct {
		d                          Direct
		ranks, bytes, blocks, tile int
	}{
		{TwoShot, 4, 0, 1, v}, {TwoShot, 4, 4, 1, v}, {TwoShot, 4, 4 * v, 1, v}, {TwoShot, 4, 4*v + 4, 2, v},
		{TwoShot, 4, 4 * 128 * v, 128, v}, {TwoShot, 4, 4 * 256 * v, 128, 2 * v}, {TwoShot, 4, 4 * 512 * v, 128, 4 * v},
		{TwoShot, 4, 4 * 1024 * v, 128, 4 * v},
		{ReduceScatter, 4, 64 * v, 64, v}, {ReduceScatter, 4, 128 * v, 64, 2 * v}, {Reduce, 2, 2 * v, 1, v},
		{Broadcast, 2, 4 * v, 2, v},
		{AllGather, 4, v, 4, v}, {AllToAll, 2, v, 2, v}, {Gather, 3, v, 3, v}, {Scatter, 8, v, 8, v},
	} {
		blocks, tile := WindowShape(c.d, c.ranks, c.bytes)
		require.Equal(t, []int{c.blocks, c.tile}, []int{blocks, tile}, "%+v", c)
	}
}
