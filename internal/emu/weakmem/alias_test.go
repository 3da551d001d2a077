package weakmem

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// other is how far an alias lies from the first address of a memory.
const other = 0x1000000

// mapTwice maps memory at an address and other bytes after it.
func mapTwice(t testing.TB, m *Memory, a Allocation) {
	t.Helper()
	require.NoError(t, m.Map(a))
	a.Addr += other
	a.Name += ", alias"
	require.NoError(t, m.Map(a))
}

// newAliases is a scene with memory of four pages at 0x10000 and at an alias. Block a is on device 0, block b on that
// device or another.
func newAliases(t *testing.T, c Config, device int) *scene {
	s := newScene(t, c)
	mapTwice(t, s.m, Allocation{Addr: x, Data: make([]byte, 4*pageBytes), Physical: 7, Name: "window"})
	s.b = s.m.Begin(device, "combine", Clock{}).Block([3]int{1, 0, 0}, [3]int{32, 4, 1}, 128)
	return s
}

// Two accesses of one memory conflict by whatever address: within a warp, between warps, blocks and devices, with the
// driver, and with a copy.
func TestAliasesConflict(t *testing.T) {
	weak := func(n int) How { return How{Line: n} }
	first := map[string]func(s *scene, at uint64) *Fault{
		"store": func(s *scene, at uint64) *Fault { return store(s.a, 0, lane0, at, weak(6)) },
		"load":  func(s *scene, at uint64) *Fault { return load(s.a, 0, lane0, at, weak(6)) },
	}
	second := map[string]func(s *scene, at uint64) error{
		"lane":   func(s *scene, at uint64) error { return asError(store(s.a, 0, lane1, at-4, weak(9))) },
		"warp":   func(s *scene, at uint64) error { return asError(store(s.a, 1, lane0, at, weak(9))) },
		"block":  func(s *scene, at uint64) error { return asError(store(s.b, 0, lane0, at, weak(9))) },
		"vector": func(s *scene, at uint64) error { return asError(store(s.b, 0, warp8, at-8, weak(9))) },
		"atomic": func(s *scene, at uint64) error {
			return asError(s.b.Atomic(0, lane0, row(at, 4), 4, nil, func(_ int, v uint64) uint64 { return v + 1 }, weak(9)))
		},
		"driver": func(s *scene, at uint64) error { _, err := s.m.Set(at, []byte{1}, 4, Clock{}); return err },
		"copy": func(s *scene, at uint64) error {
			_, f := s.b.Begin(0, 0, Plan{Dst: at, Src: 0x1000, Bytes: 4, Align: 4, Line: 9})
			return asError(f)
		},
	}
	for name1, before := range first {
		for name2, after := range second {
			for device := range 2 {
				for _, from := range []uint64{0, other} {
					for _, to := range []uint64{0, other} {
						t.Run(fmt.Sprintf("%s, %s, device %d, %#x, %#x", name1, name2, device, from, to), func(t *testing.T) {
							s := newAliases(t, Config{}, device)
							require.Nil(t, before(s, x+pageBytes+16+from))
							require.NoError(t, after(s, x+pageBytes+16+to))
							require.Len(t, s.faults, 1)
							f := s.faults[0]
							require.Equal(t, Race, f.Kind)
							require.EqualValues(t, x+pageBytes+16+to, f.Addr)
							require.Equal(t, 6, f.Other.Line)
							if from != to {
								require.Contains(t, f.Error(), fmt.Sprintf("through the memory's other address, %#x,", x+pageBytes+16+from))
							} else {
								require.NotContains(t, f.Error(), "other address")
							}
						})
					}
				}
			}
		}
	}
}

func asError(f *Fault) error {
	if f == nil {
		return nil
	}
	return f
}

// Message passing whose threads know the memory by different addresses: a missing fence is a race and is seen, and with
// fences neither.
func TestLitmusOfAliases(t *testing.T) {
	tier.Long(t)
	at := func(s step, far uint64) step { // the step at an alias
		return func(t *thread) bool { t.far = far; defer func() { t.far = 0 }(); return s(t) }
	}
	for _, c := range []struct {
		name           string
		between, after step
		data           Order
		store, load    Order
		shows, races   bool
	}{
		{"no fence", nil, nil, Weak, Relaxed, Relaxed, true, true},
		{"no fence, all of it strong", nil, nil, Relaxed, Relaxed, Acquire, true, false},
		{"the sender's fence", fence(System), nil, Weak, Relaxed, Relaxed, false, true},
		{"the receiver's fence", nil, fence(System), Weak, Relaxed, Relaxed, true, true},
		{"fences", fence(System), fence(System), Weak, Relaxed, Relaxed, false, false},
		{"release, acquire", nil, nil, Weak, Release, Acquire, false, false},
		{"release, relaxed", nil, nil, Weak, Release, Relaxed, false, true},
		{"all of it strong, fences", fence(System), fence(System), Relaxed, Relaxed, Relaxed, false, false},
	} {
		for _, far := range []Scope{GPU, System} {
			for _, way := range tier.Some(2, []uint64{3, 1, 2, 0}) { // which of the receiver's accesses are at the alias
				t.Run(fmt.Sprintf("%s, %d, %d", c.name, far, way), func(t *testing.T) {
					l := litmus{weak: func(t []*thread) bool { return t[1].r[1] == 0 }, aliases: true, threads: func() []*thread {
						list := messagePassing(c.between, c.after, c.data, c.store, c.load, System, far)()
						r := list[1].steps
						r[0] = at(r[0], way&1*other)
						r[len(r)-1] = at(r[len(r)-1], way>>1*other)
						return list
					}}
					weak, races := 0, 0
					for seed := range uint64(2000) {
						w, r := l.run(seed, seed%2 == 1)
						weak, races = weak+b2i(w), races+b2i(r)
					}
					require.Equal(t, c.shows, weak > 0, "the weak outcome was seen %d times", weak)
					require.Equal(t, c.races, races > 0, "a race was found %d times", races)
				})
			}
		}
	}
}

// A warp has one buffer for all addresses: what it stored, it loads and overwrites by another in order.
func TestBufferOfAliases(t *testing.T) {
	for seed := range uint64(200) {
		s := newAliases(t, Config{Seed: seed, OldLoads: true}, 1)
		relaxed := How{Order: Relaxed, Scope: System}
		for i := range uint64(20) {
			to, from := x+i%2*other, x+(i+1)%2*other
			require.Nil(t, s.a.Store(0, lane0, row(to, 4), 4, []*alu.Lanes{row(i, 0)}, relaxed))
			s.m.Tick()
			s.a.FenceAlias(0, lane0)
			var d alu.Lanes
			require.Nil(t, s.a.Load(0, lane0, row(from, 4), 4, []*alu.Lanes{&d}, relaxed))
			require.Equal(t, i, d[0])
			var old alu.Lanes
			require.Nil(t, s.a.Atomic(0, lane0, row(from, 4), 4, &old, func(_ int, v uint64) uint64 { return v }, relaxed))
			require.Equal(t, i, old[0])
		}
		require.Empty(t, s.faults)
	}
}

// Between a store of a block and its access by another address there has to be a fence.proxy.alias, at the writer, the
// reader, or who passed it on. Between blocks nobody asks.
func TestAliasFence(t *testing.T) {
	everyone := func(s *scene) { s.a.Barrier([]uint32{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)}) }
	all := ^uint32(0)
	for name, c := range map[string]struct {
		between func(s *scene)
		warp    int // of the second access
		missing bool
	}{
		"nothing, same thread":       {func(*scene) {}, 0, true},
		"fence, same thread":         {func(s *scene) { s.a.FenceAlias(0, 1) }, 0, false},
		"another thread's fence":     {func(s *scene) { s.a.FenceAlias(0, lane1) }, 0, true},
		"ordinary fence":             {func(s *scene) { s.a.Fence(0, 1, How{Order: SeqCst, Scope: System}) }, 0, true},
		"fence of the async proxy":   {func(s *scene) { s.a.FenceProxy(0, 1, true, true) }, 0, true},
		"both, the async one first":  {func(s *scene) { s.a.FenceProxy(0, 1, true, true); s.a.FenceAlias(0, 1) }, 0, false},
		"both, the async one last":   {func(s *scene) { s.a.FenceAlias(0, 1); s.a.FenceProxy(0, 1, true, true) }, 0, false},
		"barrier":                    {everyone, 1, true},
		"fence, barrier":             {func(s *scene) { s.a.FenceAlias(0, 1); everyone(s) }, 1, false},
		"barrier, fence":             {func(s *scene) { everyone(s); s.a.FenceAlias(1, 1) }, 1, false},
		"fence of a third, barriers": {func(s *scene) { everyone(s); s.a.FenceAlias(2, 1); everyone(s) }, 1, false},
		"a third that was not told":  {func(s *scene) { s.a.FenceAlias(2, 1); everyone(s) }, 1, true},
		"fence, synchronised warp":   {func(s *scene) { s.a.FenceAlias(0, 1); s.a.SyncWarp(0, all) }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, strong := range []bool{false, true} {
				for _, again := range []bool{false, true} {
					how := How{Line: 6}
					if strong {
						how = How{Line: 6, Order: Relaxed, Scope: System}
					}
					s := newAliases(t, Config{}, 0)
					require.Nil(t, store(s.a, 0, lane0, x+8, how))
					c.between(s)
					how.Line = 9
					to := uint64(x + 8)
					if !again {
						to += other
					}
					require.Nil(t, load(s.a, c.warp, lane0, to, how))
					if again || !c.missing {
						require.Empty(t, s.faults)
						continue
					}
					require.Len(t, s.faults, 1)
					f := s.faults[0]
					require.Equal(t, NoAliasFence, f.Kind)
					require.Equal(t, 9, f.Line)
					require.Contains(t, f.Error(), "missing alias fence: load of 4 bytes from 0x1010008 (window, alias+0x8)")
					require.Contains(t, f.Error(), "no fence.proxy.alias lies between it and the store through the memory's other "+
						"address, 0x10008, by kernel combine, line 6")
				}
			}
		})
	}
	t.Run("blocks", func(t *testing.T) {
		s := newAliases(t, Config{}, 0)
		require.Nil(t, store(s.a, 0, lane0, x, How{}))
		require.Nil(t, store(s.a, 0, lane0, x+64, How{Order: Release, Scope: GPU}))
		require.Nil(t, load(s.b, 0, lane0, x+64+other, How{Order: Acquire, Scope: GPU}))
		require.Nil(t, load(s.b, 0, lane0, x+other, How{}))
		require.Empty(t, s.faults)
	})
	t.Run("kernels", func(t *testing.T) {
		s := newAliases(t, Config{}, 0)
		require.Nil(t, store(s.a, 0, lane0, x, How{}))
		s.a.End()
		next := s.m.Begin(0, "next", s.g.End()).Block([3]int{}, [3]int{32, 1, 1}, 0)
		require.Nil(t, load(next, 0, lane0, x+other, How{}))
		require.Empty(t, s.faults)
	})
	t.Run("loads", func(t *testing.T) {
		s := newAliases(t, Config{}, 0)
		require.Nil(t, load(s.a, 0, lane0, x, How{}))
		require.Nil(t, load(s.a, 0, lane0, x+other, How{}))
		require.Empty(t, s.faults)
	})
}

// What was unmapped at one address cannot be accessed there, and at another it can. What is known of the memory is
// forgotten when it is freed.
func TestUnmapAlias(t *testing.T) {
	s := newAliases(t, Config{}, 1)
	require.Nil(t, store(s.a, 0, lane0, x+8, How{Line: 6}))
	require.NoError(t, s.m.Unmap(x))
	f := load(s.b, 0, lane0, x+8, How{Line: 9})
	require.NotNil(t, f)
	require.Equal(t, OutOfBounds, f.Kind)
	require.Contains(t, f.Error(), "window+0x8, freed")
	require.Nil(t, load(s.b, 0, lane0, x+8+other, How{Line: 9}))
	require.Len(t, s.faults, 1, "a race with the store by the address that is gone")
	require.Equal(t, Race, s.faults[0].Kind)

	data, _ := s.m.Find(x + other)
	require.NoError(t, s.m.Unmap(x+other))
	again := func() {
		require.NoError(t, s.m.Map(Allocation{Addr: 0x900000, Data: data.Data, Physical: 7, Name: "again"}))
	}
	again()
	require.Nil(t, load(s.b, 0, lane0, 0x900008, How{Line: 10}))
	require.Len(t, s.faults, 2, "the memory was mapped nowhere meanwhile")
	require.Equal(t, 6, s.faults[1].Other.Line)
	require.NoError(t, s.m.Unmap(0x900000))
	s.m.Forget(7)
	again()
	require.Nil(t, load(s.b, 0, lane0, 0x900008, How{Line: 11}))
	require.Len(t, s.faults, 2)
	require.Len(t, s.m.physicals, 1)
}

// Aliases may be of different lengths, and lie at the same byte of a line.
func TestMapAlias(t *testing.T) {
	s := newAliases(t, Config{}, 1)
	long := make([]byte, 9*pageBytes)
	require.Nil(t, store(s.a, 0, lane0, x+8, How{Order: Release, Scope: System}))
	err := s.m.Map(Allocation{Addr: 0x900004, Data: long, Physical: 7, Name: "askew"})
	require.ErrorContains(t, err, "at the same byte of a line")
	require.NoError(t, s.m.Map(Allocation{Addr: 0x900080, Data: long, Physical: 7, Name: "long"}))
	require.Nil(t, store(s.a, 0, lane0, 0x900080+8*pageBytes, How{Order: Release, Scope: System}))
	require.Nil(t, load(s.b, 0, lane0, 0x900080+8*pageBytes, How{Order: Acquire, Scope: System}))
	require.Empty(t, s.faults)

	// The ranges of physical addresses are used again, and never twice at once.
	s.m.slots = slotCount
	taken := s.m.physicals[0].base
	for i := range uint64(3) {
		require.NoError(t, s.m.Map(Allocation{Addr: 0xa00000 + i<<12, Data: make([]byte, 8), Physical: 8 + i}))
		require.NotEqual(t, taken, s.m.physicals[1+i].base)
	}

	// What others may write by one address, they may write by all.
	a, _ := s.m.Find(x)
	b, _ := s.m.Find(x + other)
	require.False(t, b.foreign())
	a.Expose(0, 8)
	require.True(t, b.foreign())
}

// The history of memory with aliases is compacted once.
func TestHistoryOfAliases(t *testing.T) {
	s := newAliases(t, Config{}, 1)
	require.Nil(t, store(s.a, 0, lane0, x+8, How{Line: 6}))
	for i := 0; s.m.history.compacted < 2; i++ {
		require.Nil(t, store(s.a, 0, warp8, 0x1000, How{Line: 7}))
	}
	require.Nil(t, load(s.b, 0, lane0, x+8+other, How{Line: 9}))
	require.Len(t, s.faults, 1)
	require.Equal(t, 6, s.faults[0].Other.Line)
}

// An asynchronous copy reads what its warp has stored by another address, over the border of two memories.
func TestTransferOfAliases(t *testing.T) {
	s := newScene(t, Config{})
	for i := range uint64(2) { // side by side at the first address, apart at the other
		data := make([]byte, 128)
		require.NoError(t, s.m.Map(Allocation{Addr: x + i*128, Data: data, Physical: 7 + i, Name: "near"}))
		require.NoError(t, s.m.Map(Allocation{Addr: x + i*4096 + other, Data: data, Physical: 7 + i, Name: "far"}))
	}
	require.Nil(t, store(s.a, 0, lane0, x+other+124, How{}))
	require.Nil(t, store(s.a, 0, lane0, x+other+4096, How{}))
	s.a.FenceAlias(0, lane0)
	finish(t, s.a, Plan{Dst: 16, Src: x + 112, ToShared: true, Bytes: 32, Align: 16})
	require.Equal(t, []byte{0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, s.a.shared.Data[16+8:16+24])
	require.Empty(t, s.faults)
}
