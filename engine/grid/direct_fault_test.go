package grid

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// TestDirectMismatch: ranks that run different direct operations, or one of them
// a program, find out.
func TestDirectMismatch(t *testing.T) {
	const n = 2
	const number = 1 << 32 // as the device counts
	run := func(r *rig, d Direct, rank int) error {
		x := directTrial{d: d, t: kernels.Float32, count: 20}
		if d.Reduces() {
			x.op = &kernels.Sum
		}
		o := r.prepareDirect(x, 1)
		r.reset(o)
		o.jobs[rank].Stamp = transport.Stamp{0, uint64(rank)}
		return cuda.With(r.d, r.ranks[rank].ctx,
			func() error { return r.ranks[rank].engine.RunDirect(&o.jobs[rank], d, 0, 80) })
	}
	for _, test := range []struct {
		name   string
		second func(r *rig) error
	}{
		{"direct", func(r *rig) error { return run(r, AllGather, 1) }},
		{"program", func(r *rig) error {
			o := r.prepare(trial{name: "broadcast", schedule: ring.Broadcast{N: n}, t: kernels.Float32, count: 10}, 1)
			r.reset(o)
			o.jobs[1].Stamp = transport.Stamp{0, 1}
			return cuda.With(r.d, r.ranks[1].ctx, func() error { return carry(r.ranks[1].engine, &o.jobs[1]) })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for turn := range 2 * seeds() {
				r := newRig(t, emulated(t, n, cudaemu.Config{Link: link(turn), Seed: turn / 2}), mailed(n), options(n))
				r.wipe()
				require.NoError(t, run(r, OneShot, 0))
				require.NoError(t, test.second(r))
				r.sync()
				for i, m := range r.ranks {
					step, wrong := mismatch(t, m.engine.Control())
					require.EqualValues(t, 1-i, step.Peer)
					require.Equal(t, transport.Stamp{number, uint64(i)}, wrong.Want)
					require.Equal(t, transport.Stamp{number, uint64(1 - i)}, wrong.Got)
					require.True(t, m.engine.Control().Aborted())
				}
			}
		})
	}
}

// TestDirectUnsigned: without sign boards lines tell calls apart.
func TestDirectUnsigned(t *testing.T) {
	const n = 2
	for turn := range uint64(2) {
		r := newRig(t, emulated(t, n, cudaemu.Config{Link: link(turn)}), mailed(n), options(n))
		for _, m := range r.ranks {
			m.engine.signs = 0
		}
		o := r.prepareDirect(directTrials(n)[0], 1)
		r.reset(o)
		for i := range o.jobs {
			o.jobs[i].Stamp = transport.Stamp{1, uint64(i)}
		}
		r.run(o)
		r.sync()
		for i, m := range r.ranks {
			_, wrong := mismatch(t, m.engine.Control())
			require.Equal(t, transport.Stamp{1<<32 | 1, uint64(i)}, wrong.Want)
		}
	}
}

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
