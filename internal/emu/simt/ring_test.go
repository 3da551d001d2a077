package simt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/simt"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

const tileWords, ringRoom = 256, 6 * 1024 // of testdata/bulk.cu

// ringOf has device 0 send tiles to device 1, and so on; each adds its own, and the last sends the sums.
// Its blocks have different numbers of threads.
func ringOf(t *testing.T, text string, devices, blocks, tiles int, o options) (m *machine, grids []*simt.Grid,
	sums uint64) {
	o.stall = 200_000
	for range devices {
		o.devices = append(o.devices, small)
	}
	m = boot(t, text, o)
	got, flags := uint64(0), uint64(0)
	for d := range devices {
		mine := m.words(sequence(tiles*tileWords, uint32(d+1))...)
		sent, ready := m.unwritten(tiles*tileWords), m.words(make([]uint32, tiles)...)
		g := m.grid("ring", blocks, 32*(2+(d+tiles)%5), sent, ready, mine, got, flags, tiles, b2i(d == 0))
		g.Shared, g.Device = ringRoom, d
		grids = append(grids, g)
		got, flags = sent, ready
	}
	m.start(grids...)
	return m, grids, got
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestBulkRing(t *testing.T) {
	for seed := range uint64(tries(2 * asyncSeeds)) {
		devices, blocks, tiles := 2+int(seed%3), 1+int(seed/3%4), 1+int(seed*7%17)
		m, grids, sums := ringOf(t, "bulk.ptx", devices, blocks, tiles, options{seed: seed, plain: seed%4 == 3})
		for _, g := range grids {
			require.Nil(t, g.Fault(), "seed %d", seed)
		}
		require.Empty(t, m.found)
		require.Equal(t, sequence(tiles*tileWords, uint32(devices*(devices+1)/2)), m.read(sums, tiles*tileWords), "seed %d",
			seed)
	}
}

func TestBulkRingFaults(t *testing.T) {
	emulated(t)
	for _, c := range []struct {
		name, from, to string
		kinds          []weakmem.FaultKind
	}{
		{"no proxy fences", "fence.proxy.async;", "", kinds(noFence)},
		{"slots used again too early", "cp.async.bulk.wait_group 1;", "", kinds(raced)},
		{"flags before the data", "cp.async.bulk.wait_group 1;", "cp.async.bulk.wait_group.read 1;", kinds(raced, unset)},
		{"flags without release", "st.release.sys.", "st.relaxed.sys.", kinds(raced, unset)},
		{"flags released to the device", "st.release.sys.", "st.release.gpu.", kinds(raced, unset)},
		{"flags without acquire", "ld.acquire.sys.", "ld.relaxed.sys.", kinds(raced, unset)},
		{"sums not waited for", "mbarrier.arrive.shared", "mbarrier.arrive.relaxed.cta.shared::cta", kinds(raced, noFence)},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := edit{c.from, c.to}.all(t, source(t, "bulk.ptx"))
			found := 0
			const tries = 6
			for seed := range uint64(tries) {
				_, grids, _ := ringOf(t, text, 2, 2, 9, options{seed: seed})
				for _, g := range grids {
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
