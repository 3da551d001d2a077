package grid

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// TestWindowMismatch: ranks that run different things find out, and name both
// calls where there are sign boards.
func TestWindowMismatch(t *testing.T) {
	const n = 2
	sum := directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 900}
	gather := directTrial{d: AllGather, t: kernels.Float32, count: 900}
	for _, test := range []struct {
		name   string
		signs  bool
		second func(r *rig, stamp transport.Stamp) error
	}{
		{"kernels", true, func(r *rig, stamp transport.Stamp) error {
			o := r.lease(gather, false, 1)
			o.jobs[1].Stamp = stamp
			return o.run(r.ranks[1])
		}},
		{"copies", true, func(r *rig, stamp transport.Stamp) error {
			o := r.lease(gather, true, 1)
			o.jobs[1].Stamp = stamp
			return o.run(r.ranks[1])
		}},
		{"direct", true, func(r *rig, stamp transport.Stamp) error {
			o := r.mail(gather, 1)
			r.resetDirect(o)
			o.jobs[1].Stamp = stamp
			return r.ranks[1].engine.RunDirect(&o.jobs[1], AllGather, 0, 3600)
		}},
		{"kernels without signs", false, func(r *rig, stamp transport.Stamp) error {
			o := r.lease(gather, false, 1)
			o.jobs[1].Stamp = stamp
			return o.run(r.ranks[1])
		}},
		{"places", false, func(r *rig, stamp transport.Stamp) error {
			o := r.lease(sum, false, 1)
			for i := range o.in.Window.At {
				o.in.Window.At[i] -= 16
			}
			o.in.Offset, o.out.Offset = o.in.Offset+16, o.out.Offset+16
			o.jobs[1].Stamp = transport.Stamp{stamp[0], 0}
			return o.run(r.ranks[1])
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
			narrow(r)
			r.wipe()
			for _, m := range r.ranks {
				if !test.signs {
					m.engine.signs = 0
				}
			}
			o := r.lease(sum, false, 1)
			r.resetDirect(o.directRun)
			o.jobs[0].Stamp = transport.Stamp{}
			r.with(r.ranks[0], func() error { return o.run(r.ranks[0]) })
			r.with(r.ranks[1], func() error { return test.second(r, transport.Stamp{0, 1}) })
			r.sync()
			for i, m := range r.ranks {
				_, wrong := mismatch(t, m.engine.Control())
				require.True(t, m.engine.Control().Aborted())
				if test.signs {
					require.Equal(t, transport.Stamp{1 << 32, uint64(i)}, wrong.Want)
					require.Equal(t, transport.Stamp{1 << 32, uint64(1 - i)}, wrong.Got)
				}
			}
		})
	}
}

// TestWindowMissing: a rank that never comes, or dies, leaves the others waiting
// until the host ends them, with all blocks and later work on the stream, and
// nobody has touched its memory.
func TestWindowMissing(t *testing.T) {
	const n = 3
	for _, copies := range []bool{false, true} {
		r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), mailed(n), options(n))
		narrow(r)
		o := r.lease(directTrial{d: AllGather, t: kernels.Float32, count: 300}, copies, 1)
		r.resetDirect(o.directRun)
		require.NoError(t, r.ranks[0].engine.PrepareWindow(nil))
		for range 3 {
			for _, m := range r.ranks[:n-1] {
				r.with(m, func() error { return o.run(m) })
			}
		}
		require.Equal(t, sched.Rank(2), r.endStuck(r.ranks[0], 3).Peer)
		if !copies {
			r.with(r.ranks[2], func() error {
				got := make([]byte, len(o.fresh[2]))
				require.NoError(t, r.d.MemcpyDtoH(got, o.at[2]))
				require.Equal(t, -1, difference(o.fresh[2], got))
				return nil
			})
		}
		r.close()
	}
}

// TestWindowBroken takes out, one at a time, what the protocol rests on, and has
// the results be wrong or the emulator complain.
func TestWindowBroken(t *testing.T) {
	tier.Long(t)
	if gputest.OnGPU() {
		t.Skip("a GPU would not say what is wrong, but stop working")
	}
	const n = 3
	sum := directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 900}
	tests := []struct {
		name         string
		pattern, new string
		change       func(a *windowArgs)
		x            directTrial
	}{
		{"nothing", "", "", func(*windowArgs) {}, sum},
		{"flags are stored without a fence", `fence\.acq_rel\.sys;`, "", nil, sum},
		{"flags are loaded weakly", `ld\.acquire\.sys\.global\.u64`, "ld.relaxed.sys.global.u64", nil, sum},
		{"threads do not wait for their block", `bar\.red\.or\.pred q, 0, p;`, "vote.sync.any.pred q, p, -1;", nil, sum},
		{"no opening gate", "", "", func(a *windowArgs) { a.pass, a.before = 1, 0 }, sum},
		{"no closing gate", "", "", func(a *windowArgs) { a.pass = 1 }, sum},
		{"a wrong share", "", "", func(a *windowArgs) { a.bytes[0] -= 16 }, sum},
		{"the root of a broadcast opens too early", "", "", func(a *windowArgs) { a.before = 1 },
			directTrial{d: Broadcast, t: kernels.Float32, count: 900}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found := false
			for seed := uint64(0); seed < 20 && !found; seed++ {
				d := gputest.Driver(t, gputest.Faults(),
					gputest.Emu(cudaemu.Config{Devices: n, Seed: seed, StallInstructions: 50_000}))
				r := newRig(t, d, mailed(n), options(n))
				narrow(r)
				for _, m := range r.ranks {
					if test.change != nil {
						m.engine.driver = &spoiled{r.d, &m.engine.windows.args, test.change}
						continue
					}
					m.engine.text = func(name ptx.Name) ([]byte, error) {
						text, err := ptx.Text(name)
						broken := regexp.MustCompile(test.pattern).ReplaceAll(text, []byte(test.new))
						require.NotEqual(t, string(text), string(broken))
						return broken, err
					}
				}
				o := r.lease(test.x, false, seed)
				found = r.again(o)
				for _, f := range d.(*cudaemu.Machine).Reports() {
					found = found || f.Kind == weakmem.Race || f.Kind == weakmem.Uninitialized
				}
				r.close()
			}
			require.Equal(t, test.name != "nothing", found)
		})
	}
}

// spoiled changes the arguments of kernels in windows.
type spoiled struct {
	cuda.Driver
	args   *windowArgs
	change func(a *windowArgs)
}

func (s *spoiled) LaunchKernel(f cuda.Function, l *cuda.Launch, args []byte) error {
	s.change(s.args)
	return s.Driver.LaunchKernel(f, l, args)
}

// again runs an operation some times. Before each time In is written and Out
// cleared on the stream, so it matters when others read and write there. It reports
// whether something went wrong.
func (r *rig) again(o *windowRun) (wrong bool) {
	r.t.Helper()
	r.resetDirect(o.directRun)
	spare := make([]uintptr, len(r.ranks))
	for i, m := range r.ranks {
		r.with(m, func() (err error) {
			in := o.jobs[i].In
			if spare[i], err = r.d.MemAlloc(max(1, in.Len())); err != nil {
				return err
			}
			m.free = append(m.free, spare[i])
			at := int(in.Ptr() - o.at[i])
			return cuda.Write(r.d, spare[i], o.fresh[i][at:at+in.Len()])
		})
	}
	for i, m := range r.ranks {
		in, out := o.jobs[i].In, o.jobs[i].Out
		_ = cuda.With(r.d, m.ctx, func() error {
			for range 3 {
				wrong = in.Len() > 0 && r.d.MemcpyAsync(in.Ptr(), spare[i], in.Len(), m.stream) != nil || wrong
				wrong = out.Len() > 0 && r.d.MemsetD8Async(out.Ptr(), 0, out.Len(), m.stream) != nil || wrong
				wrong = o.run(m) != nil || wrong
			}
			return nil
		})
	}
	for i, m := range r.ranks {
		_ = cuda.With(r.d, m.ctx, func() error {
			got := make([]byte, len(o.want[i]))
			err := r.d.StreamSynchronize(m.stream)
			if err == nil {
				err = r.d.MemcpyDtoH(got, o.at[i])
			}
			wrong = wrong || err != nil || difference(o.want[i], got) >= 0
			return nil
		})
	}
	return wrong
}

// TestWindowAllocates: queuing an operation takes nothing from the heap.
func TestWindowAllocates(t *testing.T) {
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	m := r.ranks[0]
	m.engine.driver = mute{quiet{r.d}}
	for _, x := range leases(n) {
		for _, copies := range []bool{false, true} {
			o := r.lease(x, copies, 1)
			if copies && !r.copies(x) {
				continue
			}
			r.with(m, func() error {
				require.NoError(t, o.run(m))
				var err error
				require.Zero(t, testing.AllocsPerRun(20, func() { err = o.run(m) }), o.d)
				return err
			})
		}
	}
}

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
		o := r.lease(directTrial{d: d, root: 1, t: kernels.Int8, count: 20000}, true, uint64(d))
		r.resetDirect(o.directRun)
		r.runWindow(o)
		r.checkDirect(o.directRun)
		r.forget()
		require.EqualValues(t, 32, most, d)
	}
}

// mute is a driver that copies nothing.
type mute struct{ cuda.Driver }

func (mute) MemcpyAsync(uintptr, uintptr, int, cuda.Stream) error { return nil }

func TestWindowWrong(t *testing.T) {
	const n = 2
	d := emulated(t, n, cudaemu.Config{})
	r := newRig(t, d, mailed(n), options(n))
	m := r.ranks[0]
	all := r.lease(directTrial{d: AllGather, t: kernels.Float32, count: 10}, false, 1)
	sum := r.lease(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 10}, false, 1)
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
		{"in place", r.lease(directTrial{d: AllToAll, t: kernels.Float32, count: 10, inPlace: true}, true, 1), AllToAll, 0,
			40, func(*windowRun) {},
			"copy engines have no all-to-all in place"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := *test.run
			o.directRun = &directRun{directTrial: o.directTrial, jobs: []Job{o.jobs[0]}}
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
