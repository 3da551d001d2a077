package grid

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cudaemu"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/kernels"
)

// TestLinesTear: over PCIe a line's flag may come before its data, so notes, and direct kernels
// without digests, give wrong data there.
func TestLinesTear(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a GPU's links are what they are")
	}
	const n = 2
	wrong := func(t *testing.T, run func(r *rig, seed uint64) error) {
		for seed := range uint64(20) {
			d := emulated(t, n, cudaemu.Config{Seed: seed, Link: gputest.PCIe})
			r := newRigOn(t, d, n, mailed(n), options(n)) // as if lines came whole
			err := run(r, seed)
			r.close()
			if err != nil {
				require.ErrorContains(t, err, "want")
				return
			}
		}
		require.Fail(t, "all lines came whole")
	}
	t.Run("direct", func(t *testing.T) {
		wrong(t, func(r *rig, seed uint64) error {
			o := r.mail(directTrial{d: OneShot, t: kernels.Float32, op: &kernels.Sum, count: 300}, seed)
			r.resetDirect(o)
			r.runDirect(o)
			return r.wrongDirect(o)
		})
	})
	t.Run("notes", func(t *testing.T) {
		wrong(t, func(r *rig, seed uint64) error {
			p := r.post([]parcel{{0, 1, 480}, {1, 0, 480}}, seed)
			for i, m := range r.ranks {
				r.with(m, func() error { return m.engine.RunMessages(p.jobs[i]) })
			}
			return r.missing(p)
		})
	})
}
