package grid

import (
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
		name  string
		begin func(r *rig) (queue func(*member) error)
	}{
		{"program", func(r *rig) func(*member) error {
			x := allReduce(n)
			x.count = 2048
			o := r.prepare(x, 1)
			r.reset(o)
			return func(m *member) error { return carry(m.engine, &o.jobs[m.rank]) }
		}},
		{"direct", func(r *rig) func(*member) error {
			o := r.mail(sum, 1)
			r.resetDirect(o)
			return func(m *member) error { return m.engine.RunDirect(&o.jobs[m.rank], o.d, 0, 8192) }
		}},
		{"window", func(r *rig) func(*member) error {
			o := r.lease(sum, false, 1)
			r.resetDirect(o.directRun)
			return o.run
		}},
		{"copies", func(r *rig) func(*member) error {
			o := r.lease(directTrial{d: AllGather, t: kernels.Float32, count: 2048}, true, 1)
			r.resetDirect(o.directRun)
			return o.run
		}},
		{"messages", func(r *rig) func(*member) error {
			p := r.post([]parcel{{1, 0, 30000}}, 1)
			return func(m *member) error { return m.engine.RunMessages(p.jobs[m.rank]) }
		}},
		{"notes", func(r *rig) func(*member) error {
			p := r.post([]parcel{{1, 0, 300}}, 1)
			return func(m *member) error { return m.engine.RunMessages(p.jobs[m.rank]) }
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			board := mailed(n)
			board.MailBytes = 1 << 18
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), board, Options{Ranks: n})
			m := r.ranks[0]
			queue := test.begin(r)
			launch := func(times int) {
				r.with(m, func() error {
					for range times {
						if err := queue(m); err != nil {
							return err
						}
					}
					return nil
				})
			}
			launch(1)
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
			launch(queued)
			r.sync()
			require.Less(t, (instructions()-before)/queued/threads, atOnce)
			require.ErrorIs(t, control.Fault(), ErrAborted)
			started, finished := control.Progress()
			require.EqualValues(t, 1+queued, finished)
			require.Equal(t, finished, started)
		})
	}
}
