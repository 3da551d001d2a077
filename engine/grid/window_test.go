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

// prepareWindow makes a windowRun; it is not started.
func (r *rig) prepareWindow(x directTrial, copies bool, seed uint64) *windowRun {
	r.t.Helper()
	o := &windowRun{directRun: r.prepareDirect(x, seed), copies: copies}
	if copies && x.d == TwoShot {
		for i, p := range r.program("reduce-scatter", ring.ReduceScatter{N: len(r.ranks)}) {
			o.jobs[i].Program = p
		}
	}
	o.queue = o.run
	w := &Window{}
	for _, i := range o.images {
		w.At = append(w.At, uint64(i.at))
		w.Bytes = max(w.Bytes, len(i.want))
	}
	// The offsets are those of a rank that is not the root, but of Reduce's Out at the root.
	offset := func(rank int, p uintptr) int { return int(p - o.images[rank].at) }
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

func (r *rig) tryWindow(x directTrial, seed uint64) {
	r.t.Helper()
	for _, copies := range []bool{false, true} {
		if !copies || r.copies(x) {
			r.once(r.prepareWindow(x, copies, seed))
		}
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
		require.NoError(r.t, m.engine.PrepareAside(256))
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
	first, second, eager := r.prepareWindow(x, true, 1), r.prepareWindow(x, true, 2), r.prepareWindow(x, true, 3)
	for _, o := range []*windowRun{first, second, eager} {
		r.reset(o)
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
	r.check(eager)
	for k, o := range []*windowRun{first, second} {
		for i, m := range r.ranks {
			r.with(m, func() error { return r.d.GraphLaunch(execs[i][k], m.stream) })
		}
		r.check(o)
		for i, m := range r.ranks {
			r.with(m, func() error { return r.d.GraphExecDestroy(execs[i][k]) })
		}
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
