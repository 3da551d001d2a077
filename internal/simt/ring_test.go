package simt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/simt"
	"github.com/ringo-go/ringo/internal/weakmem"
)

const tileWords, ringRoom = 256, 6 * 1024 // of testdata/bulk.cu

func TestBulkPush(t *testing.T) {
	const tiles, blocks = 11, 3
	for seed := range uint64(asyncSeeds) {
		m := boot(t, "bulk.ptx", options{seed: seed, plain: seed%4 == 3, devices: []simt.Shape{small, small}})
		in := sequence(tiles*tileWords, 3)
		src, dst, sums := m.words(in...), m.unwritten(len(in)), m.words(sequence(len(in), 5)...)
		copies, adds := m.grid("push", blocks, 32, dst, src, tiles), m.grid("pushAdd", blocks, 32, sums, src, tiles)
		adds.Device = 1
		copies.Shared, adds.Shared = ringRoom, ringRoom
		m.run(copies, adds)
		require.Empty(t, m.found)
		require.Equal(t, in, m.read(dst, len(in)))
		require.Equal(t, sequence(len(in), 8), m.read(sums, len(in)))
	}
}

// ringOfTwo has device 0 send its tiles to device 1, which adds its own and sends them back.
func ringOfTwo(t *testing.T, text string, seed uint64, plain bool) (m *machine, a, b *simt.Grid, sums uint64) {
	const tiles, blocks = 9, 2
	m = boot(t, text, options{seed: seed, plain: plain, stall: 200_000, devices: []simt.Shape{small, small}})
	in0, in1 := m.words(sequence(tiles*tileWords, 3)...), m.words(sequence(tiles*tileWords, 5)...)
	sent, sums := m.unwritten(tiles*tileWords), m.unwritten(tiles*tileWords)
	flags, ready := m.words(make([]uint32, tiles)...), m.words(make([]uint32, tiles)...)
	a = m.grid("ring", blocks, 96, sent, flags, in0, uint64(0), uint64(0), tiles, 1)
	b = m.grid("ring", blocks, 160, sums, ready, in1, sent, flags, tiles, 0)
	a.Shared, b.Shared, b.Device = ringRoom, ringRoom, 1
	m.start(a, b)
	return m, a, b, sums
}

func TestBulkRing(t *testing.T) {
	for seed := range uint64(asyncSeeds) {
		m, a, b, sums := ringOfTwo(t, "bulk.ptx", seed, seed%4 == 3)
		require.Nil(t, a.Fault())
		require.Nil(t, b.Fault())
		require.Empty(t, m.found)
		require.Equal(t, sequence(9*tileWords, 8), m.read(sums, 9*tileWords))
	}
}

func TestBulkRingFaults(t *testing.T) {
	emulated(t)
	for _, c := range []struct {
		name, from, to string
		kinds          []weakmem.FaultKind
	}{
		{"no proxy fences", "fence.proxy.async;", "", kinds(noFence)},
		{"slots used again too early", "cp.async.bulk.wait_group 1;", "", kinds(race)},
		{"flags before the data", "cp.async.bulk.wait_group 1;", "cp.async.bulk.wait_group.read 1;", kinds(race, unset)},
		{"flags without release", "st.release.sys.", "st.relaxed.sys.", kinds(race, unset)},
		{"flags released to the device", "st.release.sys.", "st.release.gpu.", kinds(race, unset)},
		{"flags without acquire", "ld.acquire.sys.", "ld.relaxed.sys.", kinds(race, unset)},
		{"sums not waited for", "mbarrier.arrive.shared", "mbarrier.arrive.relaxed.cta.shared::cta", kinds(race, noFence)},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := edit{c.from, c.to}.all(t, source(t, "bulk.ptx"))
			found := 0
			const tries = 6
			for seed := range uint64(tries) {
				_, a, b, _ := ringOfTwo(t, text, seed, false)
				for _, g := range []*simt.Grid{a, b} {
					if f := g.Fault(); f != nil && f.Kind != stuck { // the other one waits in vain
						require.Contains(t, c.kinds, f.Kind, "%v", f)
						found++
						break
					}
				}
			}
			t.Logf("found by %d of %d seeds", found, tries)
			require.Greater(t, 2*found, tries)
		})
	}
}

func (e edit) all(t *testing.T, text string) string {
	require.Contains(t, text, e.from)
	return strings.ReplaceAll(text, e.from, e.to)
}
