package weakmem

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// Lanes of a warp see each other's stores at once here, which hardware does not promise. That hides nothing: two lanes
// that conflict without an order are a race, in global and shared memory and through aliases.
func TestLanesOfAWarp(t *testing.T) {
	const lanes = lane0 | lane1
	all := ^uint32(0)
	flag := func(s *scene, release, acquire Order) {
		_ = store(s.a, 0, lane0, 0x1000, How{Order: release, Scope: CTA})
		_ = load(s.a, 0, lane1, 0x1000-4, How{Order: acquire, Scope: CTA})
	}
	between := map[string]struct {
		does    func(s *scene)
		ordered bool
	}{
		"nothing":                      {func(*scene) {}, false},
		"the warp is synchronised":     {func(s *scene) { s.a.SyncWarp(0, all) }, true},
		"both are":                     {func(s *scene) { s.a.SyncWarp(0, lanes) }, true},
		"the first with another":       {func(s *scene) { s.a.SyncWarp(0, lane0|4) }, false},
		"each with a third":            {func(s *scene) { s.a.SyncWarp(0, lane0|4); s.a.SyncWarp(0, lane1|4) }, true},
		"each with a third, the other": {func(s *scene) { s.a.SyncWarp(0, lane1|4); s.a.SyncWarp(0, lane0|4) }, false},
		"fence":                        {func(s *scene) { s.a.Fence(0, lanes, How{Order: AcqRel, Scope: System}) }, false},
		"fence.sc":                     {func(s *scene) { s.a.Fence(0, lanes, How{Order: SeqCst, Scope: System}) }, false},
		"fences of the proxies": {func(s *scene) {
			s.a.FenceAlias(0, lanes)
			s.a.FenceProxy(0, lanes, true, true)
		}, false},
		"release, acquire":   {func(s *scene) { flag(s, Release, Acquire) }, true},
		"release, relaxed":   {func(s *scene) { flag(s, Release, Relaxed) }, false},
		"relaxed, acquire":   {func(s *scene) { flag(s, Relaxed, Acquire) }, false},
		"another warp waits": {func(s *scene) { s.a.SyncWarp(1, all) }, false},
		"barrier":            {func(s *scene) { s.a.Barrier([]uint32{all, all, all, all}) }, true},
		"barrier of the warp": {func(s *scene) {
			s.a.Barrier([]uint32{all, 0, 0, 0})
		}, true},
	}
	for name, c := range between {
		for _, place := range []string{"global", "shared", "alias"} {
			for first := range 2 {
				for second := range 2 {
					for _, strong := range []int{0, 1, 2, 3} { // the first, the second
						t.Run(fmt.Sprintf("%s, %s, %d %d, %d", name, place, first, second, strong), func(t *testing.T) {
							s := newAliases(t, Config{}, 0)
							from, to := uint64(x+8), uint64(x+8)
							how := [2]How{{Line: 6}, {Line: 9}}
							switch place {
							case "shared":
								from, to = 8, 8
								how[0].Shared, how[1].Shared = true, true
							case "alias":
								from += other
							}
							for i := range how {
								if strong>>i&1 != 0 {
									how[i].Order, how[i].Scope = Relaxed, CTA
								}
							}
							does := []func(*Block, int, uint32, uint64, How) *Fault{load, store}
							if how[0].Shared { // and not read before it is written
								_ = store(s.a, 0, 0xf, 0, how[0])
								s.a.SyncWarp(0, all)
							}
							_ = does[first](s.a, 0, lane0, from, how[0])
							c.does(s)
							_ = does[second](s.a, 0, lane1, to-4, how[1])
							races := 0
							for _, f := range s.faults {
								if f.Kind == Race {
									races++
									require.Equal(t, 6, f.Other.Line)
								}
							}
							require.Equal(t, first+second > 0 && !c.ordered && strong != 3, races > 0)
						})
					}
				}
			}
		}
	}
	t.Run("one instruction", func(t *testing.T) {
		for _, apart := range []bool{false, true} { // one run of lanes, or two
			s := newAliases(t, Config{}, 0)
			addr := row(x, 8)
			addr[5] = addr[0]
			if apart {
				addr[5] = addr[0] + other
			}
			_ = s.a.Store(0, lane0|1<<5, addr, 4, []*alu.Lanes{row(1, 1)}, How{Line: 6})
			require.Len(t, s.faults, 1)
			require.Equal(t, Race, s.faults[0].Kind)
		}
	})
}
