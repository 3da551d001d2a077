package grid

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
)

// TestAfterAbort: of the operations that are queued when the host has kernels end, one finds out while it waits and
// tells the device, and the others end at once. A rank may have thousands queued, so each must take few instructions.
func TestAfterAbort(t *testing.T) {
	tier.Long(t)
	const n, queued = 2, 50
	const atOnce = 300 // instructions of a thread, on average
	sum := directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 2048}
	for _, test := range []struct {
		name string
		make func(r *rig) worker
	}{
		{"program", func(r *rig) worker {
			x := allReduce(n)
			x.count = 2048
			return r.prepare(x, 1)
		}},
		{"direct", func(r *rig) worker { return r.prepareDirect(sum, 1) }},
		{"window", func(r *rig) worker { return r.prepareWindow(sum, false, 1) }},
		{"copies", func(r *rig) worker {
			return r.prepareWindow(directTrial{d: AllGather, t: kernels.Float32, count: 2048}, true, 1)
		}},
		{"messages", func(r *rig) worker { return r.prepareGroup([]sending{{1, 0, 30000}}, false, 1) }},
		{"notes", func(r *rig) worker { return r.prepareGroup([]sending{{1, 0, 300}}, false, 1) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			board := mailed(n)
			board.MailBytes = 1 << 18
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), board, Options{Ranks: n})
			m := r.ranks[0]
			w := test.make(r)
			r.reset(w)
			r.runOn(r.ranks[:1], w)
			control := m.engine.Control()
			r.stuck(m)
			r.abort()
			r.sync()
			instructions := func() int { return 0 }
			threads := 1
			if e, ok := r.d.(*cudaemu.Machine); ok {
				instructions = func() int { return int(e.Instructions()) }
				l := m.engine.call
				threads = int(max(1, l.Grid.X) * l.Block.X)
			}
			before := instructions()
			r.runOn(r.ranks[:1], slices.Repeat([]worker{w}, queued)...)
			r.sync()
			require.Less(t, (instructions()-before)/queued/threads, atOnce)
			require.ErrorIs(t, control.Fault(), ErrAborted)
			started, finished := control.Progress()
			require.EqualValues(t, 1+queued, finished)
			require.Equal(t, finished, started)
		})
	}
}
