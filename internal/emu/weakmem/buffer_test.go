package weakmem

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// tear stores a vector of 4-byte elements and gives what another block saw of
// it while it became visible.
func tear(seed uint64, elements int) (seen map[[4]uint64]bool) {
	m := New(Config{Seed: seed, Report: func(*Fault) bool { return true }})
	_ = m.Map(Allocation{Addr: x, Data: make([]byte, 64), Name: "x"})
	g := m.Begin(0, "k", Clock{})
	a, b := g.Block([3]int{}, [3]int{1, 1, 1}, 0), g.Block([3]int{1, 0, 0}, [3]int{1, 1, 1}, 0)
	var src, dst []*alu.Lanes
	for range elements {
		src, dst = append(src, one(0, 1)), append(dst, new(alu.Lanes))
	}
	_ = a.Store(0, 1, one(0, x), 4, src, How{Order: Relaxed, Scope: System})
	seen = map[[4]uint64]bool{}
	for m.Pending() > 0 {
		m.Tick()
		_ = b.Load(0, 1, one(0, x), 4, dst, How{Order: Relaxed, Scope: System})
		var v [4]uint64
		for i, d := range dst {
			v[i] = d[0]
		}
		seen[v] = true
	}
	return seen
}

func TestTearing(t *testing.T) {
	seen := map[[4]uint64]bool{}
	for seed := range uint64(200) {
		for v := range tear(seed, 4) {
			seen[v] = true
		}
		for v := range tear(seed, 2) {
			require.Contains(t, [][4]uint64{{}, {1, 1}}, v, "8 bytes are one")
		}
	}
	require.Equal(t, map[[4]uint64]bool{{}: true, {1, 1, 0, 0}: true, {0, 0, 1, 1}: true, {1, 1, 1, 1}: true}, seen)
}

// What of a store is visible can be overwritten, though the rest is pending.
func TestHalfVisible(t *testing.T) {
	s := newScene(t, Config{})
	strong := How{Order: Relaxed, Scope: GPU}
	require.Nil(t, store(s.a, 0, 0xf, 0x1000, strong))
	buffer := &s.a.warps[0].buffer
	buffer.drain(buffer.stores[0], 1)
	require.Nil(t, store(s.b, 0, lane0, 0x1000, How{Order: Release, Scope: GPU}))
	var d alu.Lanes
	require.Nil(t, s.a.Load(0, 0xf, row(0x1000, 4), 4, []*alu.Lanes{&d}, strong))
	require.Equal(t, []uint64{1, 2, 3, 4}, d[:4])
	require.Nil(t, s.b.Store(0, lane0, row(0x1004, 4), 4, []*alu.Lanes{row(9, 0)}, How{Order: Release, Scope: GPU}))
	s.b.warps[0].buffer.push(GPU)
	require.Nil(t, s.a.Load(0, 0xf, row(0x1000, 4), 4, []*alu.Lanes{&d}, strong))
	require.Equal(t, []uint64{1, 9, 3, 4}, d[:4])
	require.Nil(t, s.b.Load(0, 0xf, row(0x1000, 4), 4, []*alu.Lanes{&d}, strong))
	require.Equal(t, []uint64{1, 9, 0, 0}, d[:4])
	require.Empty(t, s.faults)
}

// However much is stored, little is pending; all of it arrives.
func TestBuffersAreBounded(t *testing.T) {
	m := New(Config{})
	require.NoError(t, m.Map(Allocation{Addr: x, Data: make([]byte, 1<<16), Name: "x"}))
	g := m.Begin(0, "k", Clock{})
	b := g.Block([3]int{}, [3]int{64, 1, 1}, 0)
	for i := range uint64(200) {
		require.Nil(t, store(b, int(i%2), ^uint32(0), x+i*128, How{}))
		if i%8 == 0 {
			b.Barrier([]uint32{^uint32(0), ^uint32(0)})
		}
		if i%32 == 0 {
			b.Fence(0, 1, How{Order: AcqRel, Scope: GPU})
		}
		require.LessOrEqual(t, m.Pending(), 4)
	}
	total := 0
	for _, d := range m.dirty {
		total += len(d.stores)
	}
	require.LessOrEqual(t, total, 2*warpPending+blockPending+devicePending)
	require.Greater(t, total, warpPending)
	b.End()
	require.Zero(t, m.Pending())
	s, _ := m.Find(x)
	for i := range 200 * 32 {
		require.Equal(t, uint64(1+i%32), get(s.Data[4*i:], 4))
	}
}

func TestPlainIsVisibleAtOnce(t *testing.T) {
	m := New(Config{Plain: true})
	require.NoError(t, m.Map(Allocation{Addr: x, Data: make([]byte, 64), Written: make([]uint64, 1), Name: "x"}))
	g := m.Begin(0, "k", Clock{})
	a, b := g.Block([3]int{}, [3]int{1, 1, 1}, 0), g.Block([3]int{1, 0, 0}, [3]int{1, 1, 1}, 0)
	for i := range uint64(8) {
		before := m.Changes()
		require.Nil(t, a.Store(0, 1, one(0, x), 2, []*alu.Lanes{one(0, 0xffff0000+i)}, How{}))
		require.Equal(t, i > 0, m.Changes() > before, "only what changes memory counts")
		var d alu.Lanes
		require.Nil(t, b.Load(0, 1, one(0, x), 2, []*alu.Lanes{&d}, How{}))
		require.Equal(t, i, d[0])
	}
	require.Equal(t, OutOfBounds, load(b, 0, 1, x+64, How{}).Kind)
}

// The same seed makes the same happen.
func TestSeeds(t *testing.T) {
	for seed := range uint64(20) {
		require.Equal(t, tear(seed, 4), tear(seed, 4))
	}
}

func TestAtomicsOfEverySize(t *testing.T) {
	for _, size := range []int{2, 4, 8} {
		for off := uint64(0); off < 16; off += uint64(size) {
			s := newScene(t, Config{})
			var old alu.Lanes
			max := ^uint64(0) >> (64 - 8*size)
			add := func(lane int, was uint64) uint64 { return was + uint64(lane) - 1 }
			require.Nil(t, s.a.Atomic(0, 7, row(0x1000+off, 0), size, &old, add, How{Scope: GPU}))
			require.Equal(t, []uint64{0, max, max}, old[:3])
			sp, _ := s.m.Find(0x1000)
			for i := 0; i < 64; i += size {
				require.Zero(t, get(sp.Data[i:], size), "-1 + 0 + 1, and no byte beside")
			}
		}
	}
}

// Records that nothing refers to are dropped, the others stay.
func TestHistoryIsBounded(t *testing.T) {
	s := newScene(t, Config{})
	s.m.history.limit = 100
	require.NoError(t, s.m.Map(Allocation{Addr: 0x10000, Data: make([]byte, 1<<14), Name: "big"}))
	require.Nil(t, store(s.b, 1, warp8, 0x1000, How{Line: 77}))
	random := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		require.Nil(t, store(s.a, 0, ^uint32(0), 0x10000+uint64(random.IntN(64))*128, How{Line: 5}))
		s.m.history.limit = min(s.m.history.limit, 1000)
		require.Less(t, len(s.m.history.records), 1100)
	}
	require.Greater(t, s.m.history.compacted, 10)
	require.Nil(t, load(s.a, 2, lane0, 0x1008, How{Line: 6}))
	require.Len(t, s.faults, 1)
	require.Contains(t, s.faults[0].Error(), "line 77, device 0, block (1,0,0), thread (2,1,0)")
}

// Accesses that are not of neighbouring lanes do the same as those that are.
func TestScatteredLanes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		s := newScene(t, Config{})
		require.NoError(t, s.m.Map(Allocation{Addr: 0x10000, Data: make([]byte, 4096), Written: make([]uint64, 64),
			Name: "big"}))
		var addr, v, got alu.Lanes
		slots := random.Perm(64)
		for i := range addr {
			if random.IntN(3) == 0 && i > 0 { // a neighbour
				slots[i] = 64 + i
			}
			addr[i], v[i] = 0x10000+uint64(slots[i])*8, random.Uint64()
		}
		mask := random.Uint32()
		require.Nil(t, s.a.Store(0, mask, &addr, 8, []*alu.Lanes{&v}, How{}))
		require.Nil(t, s.a.Load(0, mask, &addr, 8, []*alu.Lanes{&got}, How{}))
		for i := range addr {
			if mask>>i&1 != 0 {
				require.Equal(t, v[i], got[i])
			} else {
				require.Zero(t, got[i])
			}
		}
		require.Empty(t, s.faults)
		s.a.End()
		sp, _ := s.m.Find(0x10000)
		for i, a := range addr {
			if mask>>i&1 != 0 {
				require.Equal(t, v[i], get(sp.Data[a-0x10000:], 8))
			}
		}
	}
}
