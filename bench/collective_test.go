package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The factors of doc/PERFORMANCE.md of nccl-tests; README.md derives them.
func TestBusFactor(t *testing.T) {
	want := map[string][3]float64{ // n = 1, 2, 8
		"allreduce":     {0, 1, 1.75},
		"allgather":     {0, 0.5, 0.875},
		"reducescatter": {0, 0.5, 0.875},
		"broadcast":     {1, 1, 1},
		"reduce":        {1, 1, 1},
		"alltoall":      {0, 0.5, 0.875},
		"gather":        {0, 0.5, 0.875},
		"scatter":       {0, 0.5, 0.875},
		"sendrecv":      {1, 1, 1},
	}
	require.Len(t, want, len(Collectives))
	for _, c := range Collectives {
		for i, n := range []int{1, 2, 8} {
			require.Equal(t, want[c.Name][i], c.Bus(n), "%s n=%d", c.Name, n)
		}
	}
}

// The length of each rank's buffers, and which collectives are measured in place, are as in nccl-tests.
func TestBuffersOfCollectives(t *testing.T) {
	want := map[string][5]int{ // blocks in and out of the root of 4, of another rank, and 1 if in place
		"allreduce": {1, 1, 1, 1, 1}, "allgather": {1, 4, 1, 4, 1}, "reducescatter": {4, 1, 4, 1, 1},
		"broadcast": {1, 1, 0, 1, 1}, "reduce": {1, 1, 1, 0, 1},
		"alltoall": {4, 4, 4, 4, 0}, "gather": {1, 4, 1, 0, 1}, "scatter": {4, 1, 0, 1, 1}, "sendrecv": {1, 1, 1, 1, 0},
	}
	for _, c := range Collectives {
		w := want[c.Name]
		require.Equal(t, w[:4], []int{c.In.Blocks(2, 2, 4), c.Out.Blocks(2, 2, 4), c.In.Blocks(1, 2, 4),
			c.Out.Blocks(1, 2, 4)}, c.Name)
		require.Equal(t, w[4] == 1, c.InPlace, c.Name)
	}
}

func TestCountAndSize(t *testing.T) {
	for name, c := range map[string]struct {
		collective string
		bytes      int64
		n, width   int
		count      int
		size       int64
	}{
		"whole buffer":       {"allreduce", 1024, 4, 4, 256, 1024},
		"blocks":             {"allgather", 1024, 4, 4, 64, 1024},
		"not a multiple":     {"alltoall", 1000, 3, 8, 41, 984},
		"zero":               {"scatter", 0, 4, 4, 0, 0},
		"less than an item":  {"reduce", 1, 4, 8, 1, 8},
		"less than one each": {"gather", 8, 4, 4, 1, 16},
	} {
		t.Run(name, func(t *testing.T) {
			coll, ok := find(c.collective)
			require.True(t, ok)
			require.Equal(t, c.count, coll.Count(c.bytes, c.n, c.width))
			require.Equal(t, c.size, coll.Size(c.count, c.n, c.width))
		})
	}
}

func TestResultPieces(t *testing.T) {
	const n, root, count = 3, 1, 10
	for name, want := range map[string][]origin{ // of rank 2
		"allreduce":     {{combined, 0}},
		"allgather":     {{0, 0}, {1, 0}, {2, 0}},
		"reducescatter": {{combined, 20}},
		"broadcast":     {{root, 0}},
		"reduce":        nil,
		"alltoall":      {{0, 20}, {1, 20}, {2, 20}},
		"gather":        nil,
		"scatter":       {{root, 20}},
		"sendrecv":      {{1, 0}},
	} {
		c, _ := find(name)
		require.Equal(t, want, c.result(2, root, n, count), name)
	}
	for _, c := range Collectives {
		for rank := range n {
			require.Len(t, c.result(rank, root, n, count), c.Out.Blocks(rank, root, n), c.Name)
		}
	}
}
