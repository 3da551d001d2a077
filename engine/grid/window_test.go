package grid

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
)

// windowed are the collectives that windows have.
var windowed = []Direct{TwoShot, ReduceScatter, Reduce, AllGather, AllToAll, Broadcast, Gather, Scatter}

// A windowRun is a directRun whose memory is a window.
type windowRun struct {
	*directRun
	in, out WindowOffset
	copies  bool // by copy engines
}

// lease makes a windowRun; it is not started.
func (r *rig) lease(x directTrial, copies bool, seed uint64) *windowRun {
	r.t.Helper()
	o := &windowRun{directRun: r.mail(x, seed), copies: copies}
	if copies && x.d == TwoShot {
		for i, p := range r.program("reduce-scatter", ring.ReduceScatter{N: len(r.ranks)}) {
			o.jobs[i].Program = p
		}
	}
	return o.place()
}

// place finds the window, and the offsets of the buffers in it: those of a rank that is not the root, but of Reduce's
// Out at the root.
func (o *windowRun) place() *windowRun {
	w := &Window{}
	for i, at := range o.at {
		w.At = append(w.At, uint64(at))
		w.Bytes = max(w.Bytes, len(o.want[i]))
	}
	offset := func(rank int, p uintptr) int { return int(p - o.at[rank]) }
	other := (int(o.root) + 1) % len(o.jobs)
	o.in = WindowOffset{w, offset(other, o.jobs[other].In.Ptr())}
	if o.d == Reduce {
		other = int(o.root)
	}
	o.out = WindowOffset{w, offset(other, o.jobs[other].Out.Ptr())}
	return o
}

func (o *windowRun) run(m *member) error {
	j, bytes := &o.jobs[m.rank], o.count*o.t.Size()
	if !o.copies {
		return m.engine.RunWindow(j, o.d, o.in, o.out, o.root, bytes)
	}
	if o.d == TwoShot {
		half, err := m.engine.ScatterJob(j, o.in, o.out, bytes)
		if err == nil {
			err = errors.Join(m.engine.Prepare(j.Reducer), m.engine.PrepareWindow(nil), carry(m.engine, half))
		}
		if err != nil {
			return err
		}
	}
	return m.engine.RunCopies(j, o.d, o.in, o.out, o.root, bytes)
}

func (r *rig) runWindow(o *windowRun) {
	r.t.Helper()
	for _, m := range r.ranks {
		r.with(m, func() error { return o.run(m) })
	}
}

func (r *rig) tryWindow(x directTrial, seed uint64) {
	r.t.Helper()
	for _, copies := range []bool{false, true} {
		if copies && !r.copies(x) {
			continue
		}
		o := r.lease(x, copies, seed)
		r.resetDirect(o.directRun)
		r.runWindow(o)
		r.checkDirect(o.directRun)
		r.forget()
	}
}

// copies reports whether copy engines carry out an operation, and with the bits of
// the order of ranks.
func (r *rig) copies(x directTrial) bool {
	rounds := x.op != nil && strings.Contains(x.t.String(), "float") && x.op.Kind != kernels.KindMax &&
		x.op.Kind != kernels.KindMin
	return r.ranks[0].engine.CanCopy(x.d) && !rounds && !(x.d == AllToAll && x.inPlace)
}

// narrow has kernels in windows take several tiles in each of several blocks, and
// copies run beside each other.
func narrow(r *rig) {
	for _, m := range r.ranks {
		m.engine.aside.from = 256
		m.engine.windows.shapes = func(d Direct, _, bytes int) windowShape {
			return windowShape{blocks: 1 + (int(d)+bytes)%3, threads: 64, tile: 512 + 128*(bytes%2)}
		}
	}
}

// TestWindow compares every collective with what it should be, bit for bit, for
// counts and places of all sorts.
func TestWindow(t *testing.T) {
	tier.Long(t)
	types := []kernels.DataType{kernels.BFloat16, kernels.Float32, kernels.Int8, kernels.Float64}
	for _, n := range []int{2, 3, 4, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{Seed: uint64(n / 2), Link: link(uint64(n / 2))}), mailed(n), options(n))
			narrow(r)
			for _, d := range windowed {
				for i, bytes := range []int{0, 8, 120, 1040, 3000, 6001} {
					if n == 8 && bytes > 3000 || !tier.Pairs() && (i+int(d)+n)%6 > 0 {
						continue
					}
					ty := types[(i+int(d))%len(types)]
					x := directTrial{d: d, root: sched.Rank(i % n), t: ty, count: bytes / ty.Size(), inPlace: i%3 == 2}
					if d.Reduces() {
						x.op = &kernels.Sum
					}
					r.tryWindow(x, uint64(10*i))
					x.in, x.out, x.inPlace, x.skew = 1, 1+i%2, !x.inPlace, i%2*ty.Size()
					x.count |= 1
					r.tryWindow(x, uint64(10*i+1))
				}
			}
		})
	}
}

// leases are operations that follow each other in windows, on grids of different
// sizes.
func leases(n int) []directTrial {
	last := sched.Rank(n - 1)
	return []directTrial{
		{d: TwoShot, t: kernels.BFloat16, op: &kernels.Sum, count: 700, inPlace: true},
		{d: Broadcast, root: last, t: kernels.Int8, count: 3003},
		{d: ReduceScatter, t: kernels.Int32, op: &kernels.Avg, count: 171, in: 1},
		{d: AllGather, t: kernels.Int8, count: 3000, out: 1},
		{d: Gather, root: last, t: kernels.Float32, count: 200},
		{d: Broadcast, t: kernels.Float32, count: 500, inPlace: true},
		{d: Scatter, t: kernels.Int8, count: 77},
		{d: Reduce, root: last, t: kernels.BFloat16, op: &kernels.Max, count: 90},
		{d: AllToAll, t: kernels.Float32, count: 55, inPlace: true},
		{d: TwoShot, t: kernels.Int32, op: &kernels.Avg, count: 250},
		{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 250},
		{d: AllToAll, t: kernels.Float32, count: 155},
	}
}

// TestWindowOrders runs operations one after the other without waiting in
// between, some of them by direct kernels, under the emulator's strict memory and many seeds.
func TestWindowOrders(t *testing.T) {
	tier.Long(t)
	for seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { // a subtest gives its memory back
			n := []int{2, 3, 4}[seed%3]
			r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed, Link: link(seed)}), mailed(n), options(n))
			narrow(r)
			wide(r)
			var all []*directRun
			var queue []func()
			for i, x := range leases(n) {
				turn := i + int(seed)
				if turn%3 == 0 {
					continue
				}
				o := r.lease(x, turn%2 == 0 && r.copies(x), 10*seed+uint64(i))
				all, queue = append(all, o.directRun), append(queue, func() { r.runWindow(o) })
				if turn%4 == 0 && r.ranks[0].engine.CanDirect() {
					o := r.mail(letters(n)[i%len(letters(n))], 10*seed+uint64(i)+5)
					all, queue = append(all, o), append(queue, func() { r.runDirect(o) })
				}
			}
			for _, o := range all {
				r.resetDirect(o)
			}
			for _, run := range queue {
				run()
			}
			for _, o := range all {
				r.checkDirect(o)
			}
		})
	}
}

// TestWindowGraphs mixes replays of graphs with operations that are not captured.
func TestWindowGraphs(t *testing.T) {
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	narrow(r)
	var captured, eager []*windowRun
	for i, x := range leases(n) {
		captured = append(captured, r.lease(x, i%2 == 1 && r.copies(x), uint64(i)))
		eager = append(eager, r.lease(x, false, uint64(i)+100))
	}
	var graphs []cuda.GraphExec
	for _, m := range r.ranks {
		r.with(m, func() error {
			require.NoError(t, r.d.StreamBeginCapture(m.stream, cuda.CaptureGlobal))
			for _, o := range captured {
				require.NoError(t, o.run(m))
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
			r.resetDirect(captured[i].directRun)
			r.resetDirect(eager[i].directRun)
		}
		r.runWindow(eager[0])
		for i, m := range r.ranks {
			r.with(m, func() error { return r.d.GraphLaunch(graphs[i], m.stream) })
		}
		for _, o := range eager[1:] {
			r.runWindow(o)
		}
		for _, o := range append(captured, eager...) {
			r.checkDirect(o.directRun)
		}
	}
	for i, m := range r.ranks {
		r.with(m, func() error { return r.d.GraphExecDestroy(graphs[i]) })
		started, finished := m.engine.Control().Progress()
		require.GreaterOrEqual(t, started, uint64(3*(len(captured)+len(eager))))
		require.Equal(t, started, finished)
	}
}

// TestWindowOps runs every type and reduction, with vectors and with elements.
func TestWindowOps(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: true}), mailed(n), options(n))
	for i, red := range reductions() {
		t.Run(red.String(), func(t *testing.T) {
			r.t = t
			x := directTrial{d: TwoShot, t: red.t, op: &red.op, count: 480/red.t.Size() + 1}
			r.tryWindow(x, uint64(i))
			x.in = 1
			x.skew = red.t.Size()
			r.tryWindow(x, uint64(i))
		})
	}
	r.t = t
	for _, ty := range []kernels.DataType{kernels.BFloat16, kernels.Float64, kernels.Int8} {
		op := kernels.PreMulSum(3)
		r.tryWindow(directTrial{d: TwoShot, t: ty, op: &op, count: 100, scalar: true}, 1)
	}
}

// TestWindowCaptures queues copies while a capture is open that has some too, and
// in a second capture.
func TestWindowCaptures(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	narrow(r)
	x := directTrial{d: AllGather, t: kernels.Float32, count: 500}
	first, second, eager := r.lease(x, true, 1), r.lease(x, true, 2), r.lease(x, true, 3)
	for _, o := range []*windowRun{first, second, eager} {
		r.resetDirect(o.directRun)
	}
	var execs [][2]cuda.GraphExec
	for i, m := range r.ranks {
		var streams [2]cuda.Stream
		r.with(m, func() (err error) {
			require.NoError(t, m.engine.PrepareWindow(nil))
			for k, o := range []*windowRun{first, second} {
				streams[k], err = r.d.StreamCreate(cuda.StreamNonBlocking, 0)
				require.NoError(t, err)
				o.jobs[i].Stream = streams[k]
				require.NoError(t, r.d.StreamBeginCapture(streams[k], cuda.CaptureThreadLocal))
				require.NoError(t, o.run(m))
			}
			require.NoError(t, eager.run(m))
			require.NoError(t, first.run(m))
			var x [2]cuda.GraphExec
			var graphs [2]cuda.Graph
			for k, s := range streams {
				graphs[k], err = r.d.StreamEndCapture(s)
				require.NoError(t, err)
				require.NoError(t, r.d.StreamDestroy(s))
			}
			for k, g := range graphs {
				x[k], err = r.d.GraphInstantiate(g, 0)
				require.NoError(t, err)
				require.NoError(t, r.d.GraphDestroy(g))
			}
			execs = append(execs, x)
			return nil
		})
	}
	r.checkDirect(eager.directRun)
	for k, o := range []*windowRun{first, second} {
		for i, m := range r.ranks {
			r.with(m, func() error { return r.d.GraphLaunch(execs[i][k], m.stream) })
		}
		r.checkDirect(o.directRun)
		for i, m := range r.ranks {
			r.with(m, func() error { return r.d.GraphExecDestroy(execs[i][k]) })
		}
	}
}

// TestWindowSharedDevice has three ranks on one device. All is loaded and
// allocated before the first kernel waits for another.
func TestWindowSharedDevice(t *testing.T) {
	const n = 3
	r := newRigOn(t, emulated(t, 1, cudaemu.Config{}), 1, mailed(n), options(n))
	narrow(r)
	var all []*windowRun
	for i, x := range leases(n) {
		o := r.lease(x, i%2 == 1 && r.copies(x), uint64(i))
		r.resetDirect(o.directRun)
		for k, m := range r.ranks {
			r.with(m, func() error { return m.engine.PrepareWindow(o.jobs[k].Reducer) })
			r.with(m, func() error { return m.engine.PrepareWindow(nil) })
		}
		all = append(all, o)
	}
	for _, o := range all {
		r.runWindow(o)
	}
	for _, o := range all {
		r.checkDirect(o.directRun)
	}
}

func TestWindowShape(t *testing.T) {
	for _, test := range []struct {
		d             Direct
		bytes         int
		blocks, tileK int
	}{
		{AllGather, 0, 1, 8},
		{AllGather, 64 << 10, 32, 8},
		{AllGather, 4 << 20, 128, 32},
		{AllToAll, 1 << 30, 128, 32},
		{TwoShot, 1 << 20, 32, 8},
		{ReduceScatter, 16 << 20, 64, 32},
	} {
		require.Equal(t, windowShape{test.blocks, maxThreads, test.tileK << 10}, shapeOf(test.d, 4, test.bytes),
			"%v of %d bytes", test.d, test.bytes)
	}
}
