package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/simt"
)

func TestStartRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(g *simt.Grid)
		want   string
	}{
		{"device", func(g *simt.Grid) { g.Device = 3 }, "no device 3"},
		{"extents", func(g *simt.Grid) { g.Dim[1] = 0 }, "at least 1"},
		{"threads", func(g *simt.Grid) { g.Block = [3]int{64, 32, 1} }, "2048 threads"},
		{"shared memory", func(g *simt.Grid) { g.Shared = 1 << 20 }, "shared memory"},
		{"arguments", func(g *simt.Grid) { g.Args = g.Args[:4] }, "4 bytes of arguments"},
		{"a part of a cluster", func(g *simt.Grid) { g.Dim[0], g.Cluster = 5, [3]int{2, 1, 1} }, "have to be multiples"},
		{"a large cluster", func(g *simt.Grid) { g.Dim[0], g.Cluster = 9, [3]int{9, 1, 1} }, "has room for 8"},
		{"cooperative", func(g *simt.Grid) { g.Dim[0], g.Cooperative = 9, true }, "has room for 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := boot(t, "block.ptx", options{})
			g := m.grid("reverse", 1, 32, m.words(1))
			c.change(g)
			require.ErrorContains(t, m.world.Start(g), c.want)
		})
	}
}

// A kernel may say how many threads its blocks have, exactly or at most.
func TestThreadsOfKernels(t *testing.T) {
	for _, c := range []struct {
		directive string
		block     [3]int
		want      string
	}{
		{".maxntid 64, 2", [3]int{64, 2, 1}, ""},
		{".maxntid 64, 2", [3]int{128, 1, 1}, ""},
		{".maxntid 64, 2", [3]int{129, 1, 1}, "blocks of 129 threads, .maxntid is [64 2 1]"},
		{".maxntid 64", [3]int{65, 1, 1}, "blocks of 65 threads, .maxntid is [64 1 1]"},
		{".reqntid 32, 2", [3]int{32, 2, 1}, ""},
		{".reqntid 32, 2", [3]int{64, 1, 1}, "blocks of [64 1 1] threads, .reqntid is"},
		{".reqntid 32", [3]int{32, 2, 1}, "blocks of [32 2 1] threads, .reqntid is"},
	} {
		m := boot(t, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() "+c.directive+" { ret; }\n",
			options{})
		g := m.grid("k", 1, 1)
		g.Block = c.block
		if err := m.world.Start(g); c.want == "" {
			require.NoError(t, err, c)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
}

// Cooperative grids become resident whole, when all of their blocks fit.
func TestCooperativeGridWaits(t *testing.T) {
	each(t, func(t *testing.T, o options) {
		m := boot(t, "order.ptx", o)
		arrived, data, out := m.words(0), m.unwritten(8), m.unwritten(8)
		first := m.grid("count", 5, 32, m.words(0), m.unwritten(5*32))
		g := m.grid("meet", 8, 64, arrived, data, out)
		g.Cooperative = true
		m.run(first, g)
		require.EqualValues(t, 36, m.read(out, 8)[7])
	})
}
