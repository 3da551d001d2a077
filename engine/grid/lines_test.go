package grid

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
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

// TestLinesOfCounters: lines of small numbers are told apart although they arrive in parts. Digests of plain products
// would be the same for a 3 in the first word and a 1 in the second.
func TestLinesOfCounters(t *testing.T) {
	tier.Long(t)
	const n, count = 2, 2
	lines := [][count]uint64{{3, 0}, {3, 0}, {0, 1}, {0, 1}} // those that follow are in the other half of the mailbox
	for seed := range uint64(8) {
		r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed, Link: link(1)}), mailed(n), options(n))
		var all []*directRun
		for i := range 40 {
			o := r.mail(directTrial{d: AllGather, t: kernels.Int64, count: count}, seed)
			for rank := range r.ranks {
				j, put := &o.jobs[rank], func(b []byte, at mem.Region) {
					for k := range at.Len() / 8 {
						binary.LittleEndian.PutUint64(b[int(at.Ptr()-o.at[rank])+8*k:], lines[i%len(lines)][k%count])
					}
				}
				put(o.fresh[rank], j.In)
				put(o.want[rank], j.In)
				put(o.want[rank], j.Out)
			}
			r.resetDirect(o)
			all = append(all, o)
		}
		for _, o := range all {
			r.runDirect(o)
		}
		for _, o := range all {
			r.checkDirect(o)
		}
	}
}
