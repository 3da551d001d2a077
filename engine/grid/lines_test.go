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
	for name, make := range map[string]func(r *rig, seed uint64) worker{
		"direct": func(r *rig, seed uint64) worker {
			return r.prepareDirect(directTrial{d: OneShot, t: kernels.Float32, op: &kernels.Sum, count: 300}, seed)
		},
		"notes": func(r *rig, seed uint64) worker {
			return r.prepareGroup([]sending{{0, 1, 480}, {1, 0, 480}}, false, seed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				d := emulated(t, n, cudaemu.Config{Seed: seed, Link: gputest.PCIe})
				r := newRigOn(t, d, n, mailed(n), options(n)) // as if lines came whole
				w := make(r, seed)
				r.reset(w)
				r.run(w)
				err := r.wrong(w)
				r.close()
				if err != nil {
					require.ErrorContains(t, err, "want")
					return
				}
			}
			require.Fail(t, "all lines came whole")
		})
	}
}

// TestLinesOfCounters: lines of small numbers are told apart although they arrive in parts. Digests of plain products
// would be the same for a 3 in the first word and a 1 in the second.
func TestLinesOfCounters(t *testing.T) {
	tier.Long(t)
	const n, count = 2, 2
	lines := [][count]uint64{{3, 0}, {3, 0}, {0, 1}, {0, 1}} // those that follow are in the other half of the mailbox
	for seed := range uint64(8) {
		r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed, Link: link(1)}), mailed(n), options(n))
		var all []worker
		for turn := range 40 {
			o := r.prepareDirect(directTrial{d: AllGather, t: kernels.Int64, count: count}, seed)
			for rank := range r.ranks {
				i, j := &o.images[rank], &o.jobs[rank]
				put := func(b []byte, at mem.Region) {
					for k := range at.Len() / 8 {
						binary.LittleEndian.PutUint64(b[int(at.Ptr()-i.at)+8*k:], lines[turn%len(lines)][k%count])
					}
				}
				put(i.fresh, j.In)
				put(i.want, j.In)
				put(i.want, j.Out)
			}
			all = append(all, o)
		}
		r.inTurn(all...)
	}
}
