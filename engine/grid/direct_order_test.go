package grid

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/cudaemu"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/internal/weakmem"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
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
		m.engine.mail.tune = func(d Direct, _, lines int) (blocks, threads int) { return 1 + int(d)%3, 32 + lines%2*32 }
	}
}

// TestDirectOrders runs operations one after the other without waiting in
// between, some of them by the interpreter, under the emulator's strict memory and
// many seeds.
func TestDirectOrders(t *testing.T) {
	for seed := range seeds() {
		n := []int{2, 3, 4}[seed%3]
		r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed}), mailed(n), options(n))
		wide(r)
		program := r.prepare(trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 90}, seed)
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
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		r.close()
	}
}

// TestDirectGraphs mixes replays of graphs with operations that are not captured.
// The first ever run of a kernel is in a capture.
func TestDirectGraphs(t *testing.T) {
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	wide(r)
	var captured, eager []*directRun
	for i, x := range letters(n) {
		captured = append(captured, r.mail(x, uint64(i)))
		eager = append(eager, r.mail(x, uint64(i)+100))
	}
	program := r.prepare(trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 90}, 9)
	var graphs []cuda.GraphExec
	for i, m := range r.ranks {
		r.with(m, func() error {
			require.NoError(t, r.d.StreamBeginCapture(m.stream, cuda.CaptureGlobal))
			for k, o := range captured {
				require.NoError(t, m.engine.RunDirect(&o.jobs[i], o.d, o.root, o.count*o.t.Size()))
				if k == 3 {
					require.NoError(t, m.engine.Run(&program.jobs[i]))
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
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: true}), mailed(n), options(n))
	for _, ty := range kernels.Types() {
		for i, op := range ops(ty) {
			t.Run(fmt.Sprintf("%v/%v", ty, op), func(t *testing.T) {
				r.t = t
				x := directTrial{d: TwoShot, t: ty, op: &op, count: 480/ty.Size() + 1}
				r.tryDirect(x, uint64(i))
				x.in = 1
				x.d = OneShot
				r.tryDirect(x, uint64(i))
			})
		}
	}
	r.t = t
	for _, ty := range []kernels.DataType{kernels.BFloat16, kernels.Float64, kernels.Int8} {
		op := kernels.PreMulSum(3)
		r.tryDirect(directTrial{d: OneShot, t: ty, op: &op, count: 100, scalar: true}, 1)
	}
}

// TestDirectMany has a reduction run again and again, so that both halves of the
// mailboxes are used by ranks that are ahead and behind.
func TestDirectMany(t *testing.T) {
	const n = 4
	r := newRig(t, emulated(t, n, cudaemu.Config{Seed: 5}), mailed(n), options(n))
	o := r.mail(directTrial{d: OneShot, t: kernels.Int32, op: &kernels.Max, count: 50, inPlace: true}, 1)
	r.resetDirect(o)
	for range 30 {
		r.runDirect(o)
	}
	r.checkDirect(o)
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

// TestDirectMismatch: ranks that run different direct operations, or one of them
// a program, find out.
func TestDirectMismatch(t *testing.T) {
	const n = 2
	number := uint64(7 << 32)
	run := func(r *rig, d Direct, rank int) error {
		x := directTrial{d: d, t: kernels.Float32, count: 20}
		if d.Reduces() {
			x.op = &kernels.Sum
		}
		o := r.mail(x, 1)
		r.resetDirect(o)
		o.jobs[rank].Stamp = transport.Stamp{number, uint64(rank)}
		return cuda.With(r.d, r.ranks[rank].ctx, func() error { return r.ranks[rank].engine.RunDirect(&o.jobs[rank], d, 0, 80) })
	}
	for _, test := range []struct {
		name   string
		second func(r *rig) error
	}{
		{"direct", func(r *rig) error { return run(r, AllGather, 1) }},
		{"program", func(r *rig) error {
			o := r.prepare(trial{name: "broadcast", schedule: ring.Broadcast{N: n}, t: kernels.Float32, count: 10}, 1)
			r.reset(o)
			o.jobs[1].Stamp = transport.Stamp{number, 1}
			return cuda.With(r.d, r.ranks[1].ctx, func() error { return r.ranks[1].engine.Run(&o.jobs[1]) })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
			r.wipe()
			require.NoError(t, run(r, OneShot, 0))
			require.NoError(t, test.second(r))
			r.sync()
			for i, m := range r.ranks {
				var step *engine.StepError
				var wrong *engine.MismatchError
				err := m.engine.Control().Fault()
				require.ErrorAs(t, err, &step)
				require.ErrorAs(t, err, &wrong)
				require.EqualValues(t, 1-i, step.Peer)
				require.Equal(t, transport.Stamp{number, uint64(i)}, wrong.Want)
				require.Equal(t, transport.Stamp{number, uint64(1 - i)}, wrong.Got)
				require.True(t, m.engine.Control().Aborted())
			}
		})
	}
}

// TestDirectUnnumbered: calls without numbers are not on the sign boards, but
// lines tell them apart.
func TestDirectUnnumbered(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	o := r.mail(letters(n)[0], 1)
	r.resetDirect(o)
	for i := range o.jobs {
		o.jobs[i].Stamp = transport.Stamp{1, uint64(i)}
	}
	r.runDirect(o)
	r.sync()
	for i, m := range r.ranks {
		var wrong *engine.MismatchError
		require.ErrorAs(t, m.engine.Control().Fault(), &wrong)
		require.Equal(t, transport.Stamp{1, uint64(i)}, wrong.Want)
	}
}

// TestDirectMissing: a rank that never comes leaves the others waiting until the
// host has them end, all blocks and what is queued behind.
func TestDirectMissing(t *testing.T) {
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), mailed(n), options(n))
	o := r.mail(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 300}, 1)
	r.resetDirect(o)
	for range 3 {
		for i, m := range r.ranks[:n-1] {
			r.with(m, func() error { return m.engine.RunDirect(&o.jobs[i], o.d, 0, 1200) })
		}
	}
	control := r.ranks[0].engine.Control()
	require.Eventually(t, func() bool { started, _ := control.Progress(); return started > 0 }, 10*time.Second, time.Millisecond)
	time.Sleep(20 * time.Millisecond)
	started, finished := control.Progress()
	require.EqualValues(t, 1, started)
	require.Zero(t, finished)
	require.NoError(t, control.Fault())

	begin := time.Now()
	for _, m := range r.ranks {
		m.engine.Control().Abort()
	}
	r.sync()
	require.Less(t, time.Since(begin), 5*time.Second)
	started, finished = control.Progress()
	require.EqualValues(t, 3, started)
	require.EqualValues(t, 3, finished)
	var step *engine.StepError
	require.ErrorAs(t, control.Fault(), &step)
	require.ErrorIs(t, step, ErrAborted)
	require.Equal(t, sched.Rank(2), step.Peer)
}

// TestDirectBroken takes out, one at a time, what the protocol rests on, and has
// the results be wrong or the emulator complain.
func TestDirectBroken(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a GPU would not say what is wrong, but stop working")
	}
	const n = 2
	tests := []struct {
		name         string
		pattern, new string
	}{
		{"the flag is stored by itself", `st\.volatile\.global\.v2\.u64 \[(%rd\d+)\], \{(%rd\d+), (%rd\d+)\};`,
			"st.volatile.global.u64 [$1], $2; st.volatile.global.u64 [$1+8], $3;"},
		{"lines are loaded word by word", `ld\.volatile\.global\.v2\.u64 \{(%rd\d+), (%rd\d+)\}, \[(%rd\d+)\];`,
			"ld.volatile.global.u64 $1, [$3]; ld.volatile.global.u64 $2, [$3+8];"},
		{"lines are stored weakly", `st\.volatile\.global\.v2`, "st.global.v2"},
		{"lines are loaded weakly", `ld\.volatile\.global\.v2`, "ld.global.v2"},
		{"epochs are written before others have read them", `bar\.sync[ \t]+0;`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found := false
			for seed := uint64(0); seed < 20 && !found; seed++ {
				d := gputest.Driver(t, gputest.Faults(), gputest.Emu(cudaemu.Config{Devices: n, Seed: seed, StallInstructions: 1000}))
				r := newRig(t, d, mailed(n), options(n))
				for _, m := range r.ranks {
					m.engine.text = func(name ptx.Name) ([]byte, error) {
						text, err := ptx.Text(name)
						broken := regexp.MustCompile(test.pattern).ReplaceAll(text, []byte(test.new))
						require.NotEqual(t, string(text), string(broken))
						return broken, err
					}
				}
				o := r.mail(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 900}, seed)
				r.resetDirect(o)
				for i, m := range r.ranks {
					_ = cuda.With(d, m.ctx, func() error {
						for range 3 {
							found = m.engine.RunDirect(&o.jobs[i], o.d, 0, 3600) != nil || found
						}
						return nil
					})
				}
				for i, m := range r.ranks {
					_ = cuda.With(d, m.ctx, func() error {
						got := make([]byte, len(o.want[i]))
						err := d.StreamSynchronize(m.stream)
						if err == nil {
							err = d.MemcpyDtoH(got, o.at[i])
						}
						found = found || err != nil || difference(o.want[i], got) >= 0
						return nil
					})
				}
				for _, f := range d.(*cudaemu.Machine).Reports() {
					found = found || f.Kind == weakmem.Race || f.Kind == weakmem.Uninitialized
				}
				r.close()
			}
			require.True(t, found)
		})
	}
}

// TestDirectAllocates: queuing an operation takes nothing from the heap.
func TestDirectAllocates(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
	m := r.ranks[0]
	m.engine.driver = quiet{r.d}
	for _, x := range letters(n)[:4] {
		o := r.mail(x, 1)
		r.with(m, func() error {
			require.NoError(t, m.engine.RunDirect(&o.jobs[0], o.d, o.root, o.count*o.t.Size()))
			var err error
			require.Zero(t, testing.AllocsPerRun(20, func() { err = m.engine.RunDirect(&o.jobs[0], o.d, o.root, o.count*o.t.Size()) }), o.d)
			return err
		})
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
	sum := r.mail(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 10}, 1).jobs[0]
	all := r.mail(directTrial{d: AllGather, t: kernels.Float32, count: 10}, 1).jobs[0]
	for _, test := range []struct {
		name   string
		job    Job
		d      Direct
		root   sched.Rank
		bytes  int
		change func(j *Job)
		want   string
	}{
		{"kind", all, directs, 0, 40, func(*Job) {}, "direct(9)"},
		{"root", all, Broadcast, 2, 40, func(*Job) {}, "root 2 of 2 ranks"},
		{"reducer", all, TwoShot, 0, 40, func(*Job) {}, "needs a reducer"},
		{"no reducer", sum, AllGather, 0, 40, func(*Job) {}, "needs a reducer"},
		{"null", sum, TwoShot, 0, 40, func(j *Job) { j.In = j.In.Slice(0, 0) }, "in: 0 bytes, and the operation takes 40"},
		{"short", all, AllGather, 0, 40, func(j *Job) { j.Out = j.Out.Slice(0, 79) }, "out: 79 bytes, and the operation takes 80"},
		{"scalar", sum, TwoShot, 0, 40, func(j *Job) { j.Scalar = 0x1001 }, "scalar: address 0x1001"},
		{"elements", sum, TwoShot, 0, 38, func(*Job) {}, "in: 38 bytes are no multiple"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.change(&test.job)
			err := cuda.With(r.d, m.ctx, func() error { return m.engine.RunDirect(&test.job, test.d, test.root, test.bytes) })
			require.ErrorContains(t, err, test.want)
		})
	}
}
