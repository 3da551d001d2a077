package grid

import (
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
	for i, blocks := range tier.Some(3, []int{0, 3, 1, 2, 0, 100, 1}) {
		var all []worker
		for _, x := range []trial{
			{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 3000},
			{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 5000},
			{name: "alltoallv", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 5000, varied: true},
		} {
			all = append(all, r.prepare(x, uint64(i)))
			x.name += " in order"
			o := r.prepare(x, uint64(i))
			o.jobs[1].Program.independent = false
			all = append(all, o)
		}
		x := directTrial{t: kernels.Int32, count: 1200}
		for _, x.d = range []Direct{OneShot, TwoShot, AllToAll, AllGather} {
			if x.op = nil; x.d.Reduces() {
				x.op = &kernels.Sum
			}
			all = append(all, r.prepareDirect(x, uint64(i)))
			if x.d == TwoShot || x.d == AllGather {
				all = append(all, r.prepareWindow(x, false, uint64(i)), r.prepareWindow(x, true, uint64(i)))
			}
		}
		for _, w := range all {
			for k := range w.base().jobs {
				w.base().jobs[k].Blocks = blocks
			}
			r.inTurn(w)
			if o, ok := w.(*windowRun); ok && o.copies {
				continue // its last kernel is a gate
			}
			for _, m := range r.ranks {
				if x := int(m.engine.call.Grid.X); blocks > 0 {
					require.LessOrEqual(t, x, blocks, "%s, %d blocks", w.base().name, blocks)
				} else {
					require.GreaterOrEqual(t, x, 4, "%s, as many as there is work for", w.base().name)
				}
			}
		}
		r.free()
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
	r.free()
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
		r.free()
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
