package grid

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched"
)

// TestDirectGone: of a rank that has left nothing is awaited but data.
func TestDirectGone(t *testing.T) {
	const n, gone = 3, 2
	for turn := range uint64(2) {
		for _, x := range []directTrial{
			{d: Broadcast, t: kernels.Float32, count: 300},
			{d: Broadcast, root: 1, t: kernels.Int8, count: 9001, inPlace: true}, // several rounds
			{d: Reduce, root: gone, t: kernels.Float32, op: &kernels.Sum, count: 40},
			{d: AllGather, t: kernels.Int8, count: 5},
		} {
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1, Link: link(turn)}), mailed(n), options(n))
			o := r.prepareDirect(x, 1)
			r.reset(o)
			o.images[gone].want = o.images[gone].fresh
			r.runOn(r.ranks[:gone], o)
			r.stuck(r.ranks[0])
			for _, m := range r.ranks[:gone] {
				m.engine.Control().Gone(gone)
			}
			if x.d == AllGather {
				require.Equal(t, sched.Rank(gone), r.endStuck(r.ranks[0], 1).Peer)
			} else {
				r.check(o)
			}
		}
	}
}

func TestDirectWrong(t *testing.T) {
	const n = 2
	d := emulated(t, n, cudaemu.Config{})
	r := newRig(t, d, small(n), options(n))
	m := r.ranks[0]
	require.False(t, m.engine.CanDirect())
	require.ErrorIs(t, m.engine.RunDirect(&Job{}, AllGather, 0, 8), ErrNoDirect)
	require.ErrorIs(t, m.engine.PrepareDirect(nil), ErrNoDirect)

	r = newRig(t, d, mailed(n), options(n))
	m = r.ranks[0]
	sum := r.prepareDirect(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 10}, 1).jobs[0]
	all := r.prepareDirect(directTrial{d: AllGather, t: kernels.Float32, count: 10}, 1).jobs[0]
	for _, test := range []struct {
		name   string
		job    Job
		d      Direct
		root   sched.Rank
		bytes  int
		change func(j *Job)
		want   string
	}{
		{"kind", all, Scatter + 1, 0, 40, func(*Job) {}, "direct(9)"},
		{"root", all, Broadcast, 2, 40, func(*Job) {}, "root 2 of 2 ranks"},
		{"reducer", all, TwoShot, 0, 40, func(*Job) {}, "needs a reducer"},
		{"no reducer", sum, AllGather, 0, 40, func(*Job) {}, "needs a reducer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.change(&test.job)
			err := cuda.With(r.d, m.ctx, func() error { return m.engine.RunDirect(&test.job, test.d, test.root, test.bytes) })
			require.ErrorContains(t, err, test.want)
		})
	}
}
