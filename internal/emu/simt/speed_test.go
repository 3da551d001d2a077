package simt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/simt"
)

// rate runs grids until the benchmark is satisfied, and reports thread-instructions a second.
func rate(b *testing.B, m *machine, grid func() *simt.Grid) {
	begin := m.world.Instructions()
	var last *simt.Grid
	for b.Loop() {
		g := grid()
		if last != nil {
			g.After = last.Clock()
		}
		last = g
		require.NoError(b, m.world.Start(g))
		for m.world.Step(1<<20) > 0 {
		}
		require.Nil(b, g.Fault())
	}
	b.ReportMetric(float64(m.world.Instructions()-begin)/b.Elapsed().Seconds()/1e6, "Minstr/s")
}

func BenchmarkArithmetic(b *testing.B) {
	m := boot(b, "speed.ptx", options{})
	out := m.words(make([]uint32, 1024)...)
	rate(b, m, func() *simt.Grid { return m.grid("arithmetic", 4, 256, out, 1000) })
}

// addition is a streaming vector addition, of n elements in blocks × 256 threads.
func addition(b *testing.B, kernel string, plain bool, n, count int) {
	m := boot(b, "speed.ptx", options{plain: plain})
	x, y, z := m.words(make([]uint32, n)...), m.words(make([]uint32, n)...), m.words(make([]uint32, n)...)
	b.SetBytes(int64(12 * n))
	rate(b, m, func() *simt.Grid { return m.grid(kernel, 4, 256, x, y, z, count) })
}

func BenchmarkAddStrict(b *testing.B)  { addition(b, "add", false, 1<<16, 1<<16) }
func BenchmarkAddPlain(b *testing.B)   { addition(b, "add", true, 1<<16, 1<<16) }
func BenchmarkAdd4Strict(b *testing.B) { addition(b, "add4", false, 1<<16, 1<<14) }
func BenchmarkAdd4Plain(b *testing.B)  { addition(b, "add4", true, 1<<16, 1<<14) }

func BenchmarkBulkPush(b *testing.B) {
	const tiles = 4096
	m := boot(b, "bulk.ptx", options{})
	src, dst := m.words(make([]uint32, tiles*tileWords)...), m.words(make([]uint32, tiles*tileWords)...)
	b.SetBytes(4 * tiles * tileWords)
	rate(b, m, func() *simt.Grid {
		g := m.grid("push", 4, 32, dst, src, tiles)
		g.Shared = ringRoom
		return g
	})
}
