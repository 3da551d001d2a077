package grid

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
)

// letters are direct operations that follow each other in the same mailboxes, on
// grids of different sizes.
func letters(n int) []directTrial {
	last := sched.Rank(n - 1)
	return []directTrial{
		{d: OneShot, t: kernels.BFloat16, op: &kernels.Sum, count: 300},
		{d: Broadcast, root: last, t: kernels.Int8, count: 3},
		{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 250 * n, inPlace: true},
		{d: Gather, root: last, t: kernels.Float32, count: 200},
		{d: ReduceScatter, t: kernels.Int32, op: &kernels.Avg, count: 71, in: 1},
		{d: Scatter, t: kernels.Int8, count: 77},
		{d: Reduce, root: last, t: kernels.BFloat16, op: &kernels.Max, count: 9},
		{d: AllToAll, t: kernels.Float32, count: 55, inPlace: true},
		{d: AllGather, t: kernels.Int8, count: 3000, out: 1},
	}
}

// wide has grids of several blocks.
func wide(r *rig) {
	for _, m := range r.ranks {
		m.engine.directKernels.shapes = func(d Direct, _, lines int) (blocks, threads int) { return 1 + int(d)%3, 32 + lines%2*32 }
	}
}

// TestDirectOrders runs operations one after the other without waiting in
// between, some of them by the interpreter, under the emulator's strict memory and
// many seeds.
func TestDirectOrders(t *testing.T) {
	for seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { // a subtest gives its memory back
			n := []int{2, 3, 4}[seed%3]
			r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed, Link: link(seed + seed/2)}), mailed(n), options(n))
			wide(r)
			program := r.prepare(trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum,
				count: 90}, seed)
			r.reset(program)
			var all []*directRun
			for i, x := range letters(n) {
				if (i+int(seed))%3 == 0 {
					continue
				}
				o := r.mail(x, 10*seed+uint64(i))
				r.resetDirect(o)
				all = append(all, o)
			}
			for i, o := range all {
				r.runDirect(o)
				if i == 1 {
					r.run(program)
				}
			}
			r.check(program)
			for _, o := range all {
				r.checkDirect(o)
			}
		})
	}
}

// TestDirectGraphs mixes replays of graphs with operations that are not captured.
// The first ever run of a kernel is in a capture.
func TestDirectGraphs(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	wide(r)
	var captured, eager []*directRun
	for i, x := range letters(n) {
		captured = append(captured, r.mail(x, uint64(i)))
		eager = append(eager, r.mail(x, uint64(i)+100))
	}
	program := r.prepare(trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum,
		count: 90}, 9)
	var graphs []cuda.GraphExec
	for i, m := range r.ranks {
		r.with(m, func() error {
			require.NoError(t, r.d.StreamBeginCapture(m.stream, cuda.CaptureGlobal))
			for k, o := range captured {
				require.NoError(t, m.engine.RunDirect(&o.jobs[i], o.d, o.root, o.count*o.t.Size()))
				if k == 3 {
					require.NoError(t, carry(m.engine, &program.jobs[i]))
				}
			}
			g, err := r.d.StreamEndCapture(m.stream)
			require.NoError(t, err)
			x, err := r.d.GraphInstantiate(g, 0)
			graphs = append(graphs, x)
			require.NoError(t, r.d.GraphDestroy(g))
			return err
		})
	}
	for range 3 {
		for i := range captured {
			r.resetDirect(captured[i])
			r.resetDirect(eager[i])
		}
		r.reset(program)
		r.runDirect(eager[0])
		for i, m := range r.ranks {
			r.with(m, func() error { return r.d.GraphLaunch(graphs[i], m.stream) })
		}
		for _, o := range eager[1:] {
			r.runDirect(o)
		}
		for _, o := range append(captured, eager...) {
			r.checkDirect(o)
		}
		r.check(program)
	}
	for i, m := range r.ranks {
		r.with(m, func() error { return r.d.GraphExecDestroy(graphs[i]) })
		started, finished := m.engine.Control().Progress()
		require.EqualValues(t, 3*(len(captured)+len(eager)+1), started)
		require.Equal(t, started, finished)
	}
}

// TestDirectOps runs every type and reduction, with words and with elements.
func TestDirectOps(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: true}), mailed(n), options(n))
	torn := newRig(t, emulated(t, n, cudaemu.Config{Link: link(1)}), mailed(n), options(n))
	for i, red := range reductions() {
		x, y := r, torn
		if i%2 == 1 {
			x, y = torn, r
		}
		trial := directTrial{d: TwoShot, t: red.t, op: &red.op, count: 480/red.t.Size() + 1}
		x.sub(fmt.Sprintf("%v/twoshot", red), func() { x.tryDirect(trial, uint64(i)) })
		trial.in, trial.d = 1, OneShot
		y.sub(fmt.Sprintf("%v/oneshot", red), func() { y.tryDirect(trial, uint64(i)) })
	}
	for _, ty := range []kernels.DataType{kernels.BFloat16, kernels.Float64, kernels.Int8} {
		op := kernels.PreMulSum(3)
		r.tryDirect(directTrial{d: OneShot, t: ty, op: &op, count: 100, scalar: true}, 1)
	}
}

// TestDirectScalars gives each rank a scalar of its own: what it sends is multiplied by that and rounded, wherever the
// data lie, and combined as it comes.
func TestDirectScalars(t *testing.T) {
	const n = 3
	whole := newRig(t, emulated(t, n, cudaemu.Config{Plain: true}), mailed(n), options(n))
	torn := newRig(t, emulated(t, n, cudaemu.Config{Link: link(1)}), mailed(n), options(n))
	op := kernels.PreMulSum(2)
	for i, ty := range kernels.Types() {
		for k, d := range []Direct{OneShot, TwoShot, ReduceScatter, Reduce} {
			if !tier.Pairs() && (i+k)%2 > 0 {
				continue
			}
			x, r := directTrial{d: d, t: ty, op: &op, count: 480/ty.Size() + k%2, early: true, inPlace: i%3 == 0, in: i % 2},
				whole
			if i%4 > 1 {
				r = torn
			}
			r.sub(fmt.Sprintf("%v/%v", ty, d), func() { r.tryDirect(x, uint64(i)) })
		}
	}
}

// TestDirectMany runs a reduction again and again, so that faster and slower ranks use
// both halves of the mailboxes.
func TestDirectMany(t *testing.T) {
	const n = 4
	for turn := range uint64(2) {
		r := newRig(t, emulated(t, n, cudaemu.Config{Seed: 5, Link: link(turn)}), mailed(n), options(n))
		o := r.mail(directTrial{d: OneShot, t: kernels.Int32, op: &kernels.Max, count: 50, inPlace: true}, 1)
		r.resetDirect(o)
		for range 30 {
			r.runDirect(o)
		}
		r.checkDirect(o)
	}
}

// TestDirectSharedDevice has three ranks on one device. All is loaded and
// allocated before the first kernel waits for another.
func TestDirectSharedDevice(t *testing.T) {
	const n = 3
	r := newRigOn(t, emulated(t, 1, cudaemu.Config{}), 1, mailed(n), options(n))
	var all []*directRun
	for i, x := range letters(n) {
		o := r.mail(x, uint64(i))
		r.resetDirect(o)
		for k, m := range r.ranks {
			require.NoError(t, m.engine.PrepareDirect(o.jobs[k].Reducer))
		}
		all = append(all, o)
	}
	for _, o := range all {
		r.runDirect(o)
	}
	for _, o := range all {
		r.checkDirect(o)
	}
}
