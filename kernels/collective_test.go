package kernels_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/kernels/collective"
)

// beyond is the least value of a Direct that is none.
const beyond collective.Direct = 9

// TestDirect: every constant has a name of its own, all but OneShot have a window kernel, and copy engines write to a
// window.
func TestDirect(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range collective.All() {
		require.True(t, d.Valid())
		require.NotEmpty(t, d.String())
		require.False(t, seen[d.String()], "%v twice", d)
		seen[d.String()] = true
		in, out := d.InWindow()
		require.Equal(t, d != collective.OneShot, in || out, d)
		require.False(t, d.ByCopies() && !out, "%v: copies go to the peers' Out", d)
	}
	require.False(t, beyond.Valid())
	require.Equal(t, "direct(9)", beyond.String())
	require.True(t, collective.Reduce.Reduces())
	require.False(t, collective.AllGather.Reduces())
}

// TestNeeds: the collectives' needs, as Reduces, InWindow and ByCopies report them.
func TestNeeds(t *testing.T) {
	for d, want := range map[collective.Direct][4]bool{ // reduces; in, out in a window; by copies
		collective.OneShot: {true, false, false, false}, collective.TwoShot: {true, true, true, true},
		collective.ReduceScatter: {true, true, false, false},
		collective.Reduce:        {true, true, true, false},
		collective.AllGather:     {false, false, true, true}, collective.AllToAll: {false, false, true, true},
		collective.Broadcast: {false, false, true, true},
		collective.Gather:    {false, true, false, false}, collective.Scatter: {false, false, true, true},
	} {
		in, out := d.InWindow()
		require.Equal(t, want, [4]bool{d.Reduces(), in, out, d.ByCopies()}, "%v", d)
	}
	require.Len(t, collective.All(), 9)
	require.Equal(t, collective.Scatter, collective.All()[8])
	require.False(t, collective.Direct(200).Valid() || beyond.ByCopies())
}

// TestMessages: lengths of messages and numbers of lines, to the byte.
func TestMessages(t *testing.T) {
	for bytes, want := range map[int]int{0: 1, 1: 1, 120: 1, 121: 2, 240: 2, 241: 3} {
		require.Equal(t, want, collective.Lines(bytes), bytes)
	}
	for _, c := range []struct{ ranks, bytes, two int }{{2, 0, 0}, {2, 32, 16}, {2, 33, 32}, {3, 48, 16}, {3, 49, 32},
		{8, 1 << 20, 1 << 17}} {
		require.Equal(t, c.two, collective.TwoShot.Message(c.ranks, c.bytes), c)
		require.Equal(t, c.bytes, collective.OneShot.Message(c.ranks, c.bytes))
	}
	for ranks, want := range map[int]int{1: 512 << 10, 2: 512 << 10, 3: 256 << 10, 4: 174752, 8: 74896} {
		require.Equal(t, want, collective.TornMessage(ranks), ranks)
	}
}

// TestDirectShape: the grids of direct kernels change at these numbers of lines.
func TestDirectShape(t *testing.T) {
	for _, c := range []struct {
		d                             collective.Direct
		ranks, lines, blocks, threads int
	}{
		{collective.OneShot, 2, 1, 1, 32}, {collective.OneShot, 2, 4, 1, 32}, {collective.OneShot, 2, 5, 1, 64},
		{collective.OneShot, 2, 16, 1, 128},
		{collective.OneShot, 2, 17, 2, 128}, {collective.OneShot, 2, 32, 2, 128},
		{collective.OneShot, 2, 33, 3, 128},
		{collective.OneShot, 2, 2048, 128, 128}, {collective.OneShot, 4, 2049, 65, 256},
		{collective.OneShot, 4, 4096, 128, 256}, {collective.OneShot, 4, 4097, 128, 128},
		{collective.OneShot, 2, 4097, 65, 512}, {collective.OneShot, 2, 1 << 20, 128, 512},
		{collective.TwoShot, 4, 4096, 128, 256}, {collective.TwoShot, 4, 4097, 96, 128},
		{collective.TwoShot, 4, 12000, 96, 128},
		{collective.TwoShot, 4, 12001, 128, 256}, {collective.OneShot, 4, 12000, 128, 128},
		{collective.OneShot, 4, 12001, 128, 256},
		{collective.TwoShot, 2, 12001, 128, 512},
	} {
		blocks, threads := collective.DirectShape(c.d, c.ranks, c.lines)
		require.Equal(t, []int{c.blocks, c.threads}, []int{blocks, threads}, "%+v", c)
	}
}

// TestWindowShape: the grids of window kernels have as many blocks as there is work for, then larger tiles.
func TestWindowShape(t *testing.T) {
	const v = 16 * collective.MaxThreads
	for _, c := range []struct {
		d                          collective.Direct
		ranks, bytes, blocks, tile int
	}{
		{collective.TwoShot, 4, 0, 1, v}, {collective.TwoShot, 4, 4, 1, v}, {collective.TwoShot, 4, 4 * v, 1, v},
		{collective.TwoShot, 4, 4*v + 4, 2, v},
		{collective.TwoShot, 4, 4 * 128 * v, 128, v}, {collective.TwoShot, 4, 4 * 256 * v, 128, 2 * v},
		{collective.TwoShot, 4, 4 * 512 * v, 128, 4 * v},
		{collective.TwoShot, 4, 4 * 1024 * v, 128, 4 * v},
		{collective.ReduceScatter, 4, 64 * v, 64, v}, {collective.ReduceScatter, 4, 128 * v, 64, 2 * v},
		{collective.Reduce, 2, 2 * v, 1, v},
		{collective.Broadcast, 2, 4 * v, 2, v},
		{collective.AllGather, 4, v, 4, v}, {collective.AllToAll, 2, v, 2, v}, {collective.Gather, 3, v, 3, v},
		{collective.Scatter, 8, v, 8, v},
	} {
		blocks, tile := collective.WindowShape(c.d, c.ranks, c.bytes)
		require.Equal(t, []int{c.blocks, c.tile}, []int{blocks, tile}, "%+v", c)
	}
}
