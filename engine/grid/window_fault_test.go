package grid

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/sched"
)

// counting is a driver that remembers the most threads of a launch.
type counting struct {
	cuda.Driver
	threads *uint32
}

func (c counting) LaunchKernel(f cuda.Function, l *cuda.Launch, args []byte) error {
	*c.threads = max(*c.threads, l.Grid.X*l.Block.X)
	if l.Priority >= 0 {
		return fmt.Errorf("a launch of priority %d", l.Priority)
	}
	return c.Driver.LaunchKernel(f, l, args)
}

// TestCopiesTakeNoMultiprocessor: what copy engines move takes kernels of one warp, which wait
// while nothing moves.
func TestCopiesTakeNoMultiprocessor(t *testing.T) {
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	var most uint32
	for _, m := range r.ranks {
		m.engine.driver = counting{r.d, &most}
	}
	for _, d := range []Direct{AllGather, AllToAll, Broadcast, Scatter} {
		o := r.prepareWindow(directTrial{d: d, root: 1, t: kernels.Int8, count: 20000}, true, uint64(d))
		r.reset(o)
		r.run(o)
		r.check(o)
		r.free()
		require.EqualValues(t, 32, most, d)
	}
}

func TestWindowWrong(t *testing.T) {
	const n = 2
	d := emulated(t, n, cudaemu.Config{})
	r := newRig(t, d, mailed(n), options(n))
	m := r.ranks[0]
	all := r.prepareWindow(directTrial{d: AllGather, t: kernels.Float32, count: 10}, false, 1)
	sum := r.prepareWindow(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 10}, false, 1)
	require.False(t, m.engine.CanWindow(OneShot))
	require.False(t, m.engine.CanCopy(Gather))
	for _, test := range []struct {
		name   string
		run    *windowRun
		d      Direct
		root   sched.Rank
		bytes  int
		change func(o *windowRun)
		want   string
	}{
		{"kind", sum, OneShot, 0, 40, func(*windowRun) {}, "not in windows: oneshot"},
		{"copies", all, Gather, 0, 40, func(o *windowRun) { o.copies = true }, "not in windows by copy engines: gather"},
		{"root", all, Broadcast, 2, 40, func(*windowRun) {}, "root 2 of 2 ranks"},
		{"reducer", all, TwoShot, 0, 40, func(*windowRun) {}, "needs a reducer"},
		{"short", all, AllGather, 0, 40, func(o *windowRun) { o.jobs[0].Out = o.jobs[0].Out.Slice(0, 79) },
			"out: 79 bytes, and the operation takes 80"},
		{"none", all, AllGather, 0, 40, func(o *windowRun) { o.out = WindowOffset{} }, "out: in no window"},
		{"ranks", all, AllGather, 0, 40, func(o *windowRun) { o.out.Window = &Window{At: make([]uint64, 3)} },
			"out: a window of 3 ranks, of 2"},
		{"outside", all, AllGather, 0, 40, func(o *windowRun) {
			o.out.Window = &Window{At: o.out.Window.At, Bytes: o.out.Offset + 79}
		}, "out: 80 bytes at "},
		{"elsewhere", sum, TwoShot, 0, 40, func(o *windowRun) { o.in.Offset += 4 }, "in: address 0x"},
		{"in place", r.prepareWindow(directTrial{d: AllToAll, t: kernels.Float32, count: 10, inPlace: true}, true, 1), AllToAll, 0,
			40, func(*windowRun) {},
			"copy engines have no all-to-all in place"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := *test.run
			o.directRun = &directRun{directTrial: o.directTrial, work: work{jobs: []Job{o.jobs[0]}}}
			test.change(&o)
			o.d, o.root, o.t, o.count = test.d, test.root, kernels.Int8, test.bytes
			require.ErrorContains(t, cuda.With(d, m.ctx, func() error { return o.run(m) }), test.want)
		})
	}

	far := newRig(t, d, mailed(n), options(n))
	far.ranks[0].engine.gates = nil
	require.False(t, far.ranks[0].engine.CanWindow(AllGather))
	require.ErrorIs(t, far.ranks[0].engine.PrepareWindow(nil), ErrNoWindow)
	require.ErrorIs(t, far.ranks[0].engine.RunWindow(&Job{}, AllGather, WindowOffset{}, WindowOffset{}, 0, 8), ErrNoWindow)
}
