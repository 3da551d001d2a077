package weakmem

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProxyFence has a bulk copy read what threads stored, and threads load what a bulk copy
// stored, in shared and in global memory, by several ways from one to the other.
func TestProxyFence(t *testing.T) {
	const lane1 = uint32(2)
	everyone := func(b *Block) { b.Barrier([]uint32{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)}) }
	for name, c := range map[string]struct {
		between func(s *scene, shared bool)
		warp    int // of the second access
		b       bool
		missing bool
	}{
		"nothing, same thread": {func(*scene, bool) {}, 0, false, true},
		"fence, same thread": {func(s *scene, _ bool) {
			s.a.FenceProxy(0, 1, true, true)
		}, 0, false, false},
		"another thread's fence": {func(s *scene, _ bool) {
			s.a.FenceProxy(0, lane1, true, true)
		}, 0, false, true},
		"fence before the store of other memory": {func(s *scene, shared bool) {
			s.a.FenceProxy(0, 1, !shared, shared)
		}, 0, false, true},
		"barrier": {func(s *scene, _ bool) { everyone(s.a) }, 1, false, true},
		"fence, barrier": {func(s *scene, _ bool) {
			s.a.FenceProxy(0, 1, true, true)
			everyone(s.a)
		}, 1, false, false},
		"barrier, fence": {func(s *scene, _ bool) {
			everyone(s.a)
			s.a.FenceProxy(1, 1, true, true)
		}, 1, false, false},
		"fence of a third, two barriers": {func(s *scene, _ bool) {
			everyone(s.a)
			s.a.FenceProxy(2, 1, true, true)
			everyone(s.a)
		}, 1, false, false},
		"fence of a third that was not told": {func(s *scene, _ bool) {
			s.a.FenceProxy(2, 1, true, true)
			everyone(s.a)
		}, 1, false, true},
		"fence, synchronised warp": {func(s *scene, _ bool) {
			s.a.FenceProxy(0, 1, true, true)
			s.a.SyncWarp(0, ^uint32(0))
		}, 0, false, false},
		"ordinary fence": {func(s *scene, _ bool) {
			s.a.Fence(0, 1, How{Order: SeqCst, Scope: System})
		}, 0, false, true},
	} {
		for _, shared := range []bool{false, true} {
			for _, async := range []bool{false, true} {
				s := newScene(t, Config{})
				addr := uint64(0x2000)
				if shared {
					addr = 64
				}
				first, second := How{Shared: shared, Async: async, Line: 1}, How{Shared: shared, Async: !async, Line: 2}
				require.Nil(t, store(s.a, 0, 1, addr, first))
				c.between(s, shared)
				require.Nil(t, load(s.a, c.warp, 1, addr, second))
				if !c.missing {
					require.Empty(t, s.faults, "%s, shared %v, async %v", name, shared, async)
					continue
				}
				require.Len(t, s.faults, 1, "%s, shared %v, async %v", name, shared, async)
				f := s.faults[0]
				require.Equal(t, NoProxyFence, f.Kind)
				require.Equal(t, shared, f.Shared)
				require.Contains(t, f.Error(), "missing proxy fence: load of 4 bytes")
				require.Contains(t, f.Error(), "no fence.proxy.async lies between")
			}
		}
	}
}

// A message to another block carries its proxy fence, or lacks it; an access that is not
// ordered at all is a race; the next kernel needs no fence.
func TestProxyFenceAcrossBlocks(t *testing.T) {
	flag := uint64(0x2020)
	for _, fence := range []string{"none", "sender", "receiver"} {
		s := newScene(t, Config{})
		require.Nil(t, store(s.a, 0, 1, 0x2000, How{Line: 1}))
		if fence == "sender" {
			s.a.FenceProxy(0, 1, false, true)
		}
		require.Nil(t, store(s.a, 0, 1, flag, How{Order: Release, Scope: GPU, Line: 2}))
		require.Nil(t, load(s.b, 0, 1, flag, How{Order: Acquire, Scope: GPU, Line: 3}))
		if fence == "receiver" {
			s.b.FenceProxy(0, 1, false, true)
		}
		require.Nil(t, load(s.b, 0, 1, 0x2000, How{Async: true, Line: 4}))
		require.Len(t, s.faults, b2i(fence == "none"), fence)
	}

	s := newScene(t, Config{})
	require.Nil(t, store(s.a, 0, 1, 0x2000, How{Line: 1}))
	s.a.FenceProxy(0, 1, true, true)
	require.Nil(t, load(s.b, 0, 1, 0x2000, How{Async: true, Line: 2}))
	require.Len(t, s.faults, 1)
	require.Equal(t, Race, s.faults[0].Kind)

	s = newScene(t, Config{})
	require.Nil(t, store(s.a, 0, 1, 0x2000, How{Line: 1}))
	s.a.End()
	s.b.End()
	next := s.m.Begin(0, "next", s.g.End()).Block([3]int{}, [3]int{32, 1, 1}, 0)
	require.Nil(t, load(next, 0, 1, 0x2000, How{Async: true, Line: 2}))
	require.Empty(t, s.faults)
}
