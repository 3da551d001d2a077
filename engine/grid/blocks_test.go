package grid

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
)

// TestBlocks gives each operation its own number of blocks, one after the other: no kernel
// has more, whatever carries it out, and the queues, lines and gates of those that follow are
// still in step.
func TestBlocks(t *testing.T) {
	tier.Long(t)
	const n = 3
	b := mailed(n)
	b.MailBytes *= 16
	b.Near.Lanes, b.Far.Lanes = 4, 4
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: unchecked(true)}), b, options(n))
	for _, m := range r.ranks {
		m.engine.directKernels.shapes = func(Direct, int, int) (int, int) { return 4, 64 }
		m.engine.windows.shapes = func(Direct, int, int) windowShape { return windowShape{blocks: 4, threads: 64, tile: 512} }
	}
	require.Equal(t, 2, r.ranks[0].engine.Batch(50, 100, 2).blocks)
	require.Greater(t, r.ranks[0].engine.Batch(50, 100, MaxBlocks).blocks, 2)
	has := func(what string, blocks int) {
		t.Helper()
		for _, m := range r.ranks {
			if x := int(m.engine.call.Grid.X); blocks > 0 {
				require.LessOrEqual(t, x, blocks, "%s, %d blocks", what, blocks)
			} else {
				require.GreaterOrEqual(t, x, 4, "%s, as many as there is work for", what)
			}
		}
	}
	for i, blocks := range tier.Some(3, []int{0, 3, 1, 2, 0, 100, 1}) {
		for _, x := range []trial{
			{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 3000},
			{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 5000},
			{name: "alltoallv", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 5000, varied: true},
		} {
			for _, inOrder := range []sched.Rank{sched.Nobody, 1} {
				o := r.prepare(x, uint64(i))
				for k := range o.jobs {
					o.jobs[k].Blocks = blocks
					if sched.Rank(k) == inOrder {
						o.jobs[k].Program.independent = false
					}
				}
				r.reset(o)
				r.run(o)
				has(x.name, blocks)
				r.check(o)
				for k := range o.jobs {
					o.jobs[k].Program.independent = o.jobs[k].Program.independence()
				}
				r.forget()
			}
		}
		for _, d := range []Direct{OneShot, TwoShot, AllToAll} {
			x := directTrial{d: d, t: kernels.Int32, count: 1200}
			if d.Reduces() {
				x.op = &kernels.Sum
			}
			o := r.mail(x, uint64(i))
			for k := range o.jobs {
				o.jobs[k].Blocks = blocks
			}
			r.resetDirect(o)
			r.runDirect(o)
			has(fmt.Sprint("direct ", d), blocks)
			r.checkDirect(o)
			r.forget()
		}
		for _, d := range []Direct{TwoShot, AllGather} {
			x := directTrial{d: d, t: kernels.Int32, count: 1200}
			if d.Reduces() {
				x.op = &kernels.Sum
			}
			for _, copies := range []bool{false, true} {
				o := r.lease(x, copies, uint64(i))
				for k := range o.jobs {
					o.jobs[k].Blocks = blocks
				}
				r.resetDirect(o.directRun)
				r.runWindow(o)
				if !copies {
					has(fmt.Sprint("window ", d), blocks)
				}
				r.checkDirect(o.directRun)
				r.forget()
			}
		}
	}
}

// TestFewBlocksManyTasks: a job gets as many blocks as the shared memory of its tasks needs, also if it may have fewer.
func TestFewBlocksManyTasks(t *testing.T) {
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	for _, m := range r.ranks {
		m.engine.maxShared = 4 * (portBytes + taskBytes)
	}
	o := r.prepare(trial{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 2000}, 1)
	for k := range o.jobs {
		o.jobs[k].Blocks = 1
	}
	r.reset(o)
	r.run(o)
	for _, m := range r.ranks {
		require.Greater(t, m.engine.call.Grid.X, uint32(1))
		require.LessOrEqual(t, m.engine.call.Shared, m.engine.maxShared)
	}
	r.check(o)
	r.forget()
}

// TestIndependentButTooMany: independent steps that do not fit into one launch are taken one after the other: a launch
// for some of them would wait for peers that wait for the others.
func TestIndependentButTooMany(t *testing.T) {
	const n = 3
	o := options(n)
	o.Blocks = 1
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), o)
	for _, few := range []sched.Rank{0, sched.Nobody} { // a rank, or all
		for _, m := range r.ranks {
			if few == sched.Nobody || m.rank == few {
				m.engine.maxShared = 4 * (portBytes + taskBytes)
			}
		}
		x := r.prepare(trial{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 5000},
			1)
		r.reset(x)
		r.run(x)
		r.check(x)
		r.forget()
	}
}

func TestDirectShape(t *testing.T) {
	for _, test := range []struct {
		d              Direct
		ranks, lines   int
		blocks, thread int
	}{
		{OneShot, 2, 1, 1, 32},
		{OneShot, 2, 16, 1, 128},
		{OneShot, 2, 1000, 63, 128},
		{OneShot, 2, 3000, 94, 256},
		{OneShot, 2, 5000, 79, 512},
		{TwoShot, 4, 5000, 96, 128},
		{AllGather, 4, 5000, 128, 128},
		{AllGather, 4, 100000, 128, 256},
	} {
		blocks, threads := collective.DirectShape(test.d, test.ranks, test.lines)
		require.Equal(t, []int{test.blocks, test.thread}, []int{blocks, threads}, "%+v", test)
	}
}
