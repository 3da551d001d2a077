// Ranks that differ or never come, and wrong arguments.

package grid

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// mismatch is what a rank has found of another one's call.
func mismatch(t *testing.T, c *Control) (*engine.StepError, *engine.MismatchError) {
	t.Helper()
	var step *engine.StepError
	var wrong *engine.MismatchError
	require.ErrorAs(t, c.Fault(), &step)
	require.ErrorAs(t, c.Fault(), &wrong)
	return step, wrong
}

// stuck waits until a rank's first operation has started and all kernels do nothing
// but wait for others.
func (r *rig) stuck(m *member) {
	r.t.Helper()
	started := func() bool { n, _ := m.engine.Control().Progress(); return n > 0 }
	require.Eventually(r.t, started, 10*time.Second, time.Millisecond)
	if e, ok := r.d.(*cudaemu.Machine); ok {
		require.Eventually(r.t, e.Idle, 10*time.Second, time.Millisecond)
	} else {
		time.Sleep(20 * time.Millisecond) // a GPU does not tell
	}
}

// awaitsGone has the ranks before one hear that this one has left, and finds that rank 0 still waits for its data.
func (r *rig) awaitsGone(rank int) {
	r.t.Helper()
	r.stuck(r.ranks[0])
	for _, m := range r.ranks[:rank] {
		m.engine.Control().Gone(rank)
	}
	c := r.ranks[0].engine.Control()
	ends := func() bool { _, n := c.Progress(); return n > 0 || c.Fault() != nil }
	require.Never(r.t, ends, 50*time.Millisecond, time.Millisecond)
}

// endStuck has the host end a rank's operations, of which the first waits for a
// rank that never comes, and gives for whom it waited.
func (r *rig) endStuck(m *member, operations int) *engine.StepError {
	r.t.Helper()
	control := m.engine.Control()
	r.stuck(m)
	started, finished := control.Progress()
	require.EqualValues(r.t, 1, started)
	require.Zero(r.t, finished)
	require.NoError(r.t, control.Fault())

	begin := time.Now()
	for _, m := range r.ranks {
		m.engine.Control().Abort()
	}
	r.sync()
	require.Less(r.t, time.Since(begin), 5*time.Second)
	started, finished = control.Progress()
	require.EqualValues(r.t, operations, started)
	require.EqualValues(r.t, operations, finished)
	var step *engine.StepError
	require.ErrorAs(r.t, control.Fault(), &step)
	require.ErrorIs(r.t, step, ErrAborted)
	return step
}

func allReduce(n int) trial {
	return trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 900}
}

// TestMismatch: ranks that run different calls, or the same of different
// lengths, find out, and say so with both.
func TestMismatch(t *testing.T) {
	const n = 2
	tests := []struct {
		name   string
		change func(j *Job)
		want   engine.MismatchError
	}{
		{"another call", func(j *Job) { j.Stamp = transport.Stamp{1, 77} },
			engine.MismatchError{Want: transport.Stamp{1<<32 | 1, 5}, Got: transport.Stamp{1<<32 | 1, 77}, WantBytes: 256,
				GotBytes: 256}},
		{"another length", func(j *Job) { j.InL = engine.Even(40, n, 4); j.OutL = j.InL },
			engine.MismatchError{Want: transport.Stamp{1<<32 | 1, 5}, Got: transport.Stamp{1<<32 | 1, 5}, WantBytes: 256,
				GotBytes: 20}},
		{"nothing at all", func(j *Job) { j.InL = engine.Layout{}; j.OutL = j.InL },
			engine.MismatchError{Want: transport.Stamp{1<<32 | 1, 5}, Got: transport.Stamp{1<<32 | 1, 5}, WantBytes: 256,
				GotBytes: 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
			r.wipe()
			o := r.prepare(allReduce(n), 5)
			test.change(&o.jobs[1])
			r.reset(o)
			r.run(o)
			c := r.ranks[0].engine.Control()
			require.Eventually(t, func() bool { return c.Fault() != nil }, 10*time.Second, time.Millisecond)
			step, wrong := mismatch(t, c)
			require.Equal(t, sched.Rank(1), step.Peer)
			require.Equal(t, "recv", step.Phase)
			if test.want.Got != test.want.Want && wrong.WantBytes == 0 && wrong.GotBytes == 0 {
				test.want.WantBytes, test.want.GotBytes = 0, 0 // the sign boards told first, and know no lengths
			}
			require.Equal(t, test.want, *wrong)
			require.Eventually(t, c.Aborted, 10*time.Second, time.Millisecond)
			r.ranks[1].engine.Control().Abort() // as a communicator does that hears of it
			r.sync()
		})
	}
}

// TestCrossed: ranks that wait for each other in different calls find out by
// themselves.
func TestCrossed(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	for i, m := range r.ranks {
		x := trial{name: "broadcast", schedule: ring.Broadcast{N: n, Root: sched.Rank(1 - i)}, t: kernels.Float32, count: 10}
		o := r.prepare(x, 1)
		r.reset(o)
		o.jobs[i].Stamp = transport.Stamp{5<<32 | 3, uint64(i)}
		r.with(m, func() error { return carry(m.engine, &o.jobs[i]) })
		delete(r.programs, x.name)
	}
	r.sync()
	for i, m := range r.ranks {
		step, wrong := mismatch(t, m.engine.Control())
		require.EqualValues(t, 1-i, step.Peer)
		require.Equal(t, transport.Stamp{1<<32 | 3, uint64(i)}, wrong.Want)
		require.Equal(t, transport.Stamp{1<<32 | 3, uint64(1 - i)}, wrong.Got)
	}
}

// TestMissing: a rank that never comes leaves the others waiting until the host
// ends them; then they say for whom they waited, and later work on the stream ends
// too.
func TestMissing(t *testing.T) {
	const n = 3
	for _, c := range []struct {
		name  string
		x     trial
		rank  int // that is looked at
		peer  sched.Rank
		phase string
	}{
		{"receiving", allReduce(n), 0, 2, "recv"},
		{"sending", trial{name: "scatter", schedule: direct.Scatter{N: n, Root: 0}, shares: true, t: kernels.Float32,
			count: 2000}, 0, 2, "send"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), small(n), options(n))
			o := r.prepare(c.x, 1)
			r.reset(o)
			for range 3 {
				for i, m := range r.ranks[:n-1] {
					r.with(m, func() error { return carry(m.engine, &o.jobs[i]) })
				}
			}
			m := r.ranks[c.rank]
			step := r.endStuck(m, 3)
			require.Equal(t, c.peer, step.Peer)
			require.Equal(t, c.phase, step.Phase)

			// the context is still usable
			p, err := uintptr(0), error(nil)
			r.with(m, func() error {
				if p, err = r.d.MemAlloc(64); err != nil {
					return err
				}
				return r.d.MemFree(p)
			})
		})
	}
}

// quiet is a driver whose launches do nothing.
type quiet struct{ cuda.Driver }

func (quiet) LaunchKernel(cuda.Function, *cuda.Launch, []byte) error { return nil }

// TestRunAllocates: queuing an operation takes nothing from the heap.
func TestRunAllocates(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	x := allReduce(n)
	x.t, x.op = kernels.Int32, &kernels.Avg
	avg := r.prepare(x, 1)
	varied := r.prepare(trial{name: "gather", schedule: ring.AllGather{N: n}, t: kernels.Float32, count: 70, varied: true},
		9)
	m := r.ranks[0]
	m.engine.driver = quiet{r.d}
	r.with(m, func() error {
		for _, o := range []*operation{avg, varied} {
			require.NoError(t, carry(m.engine, &o.jobs[0]))
			var err error
			require.Zero(t, testing.AllocsPerRun(20, func() { err = carry(m.engine, &o.jobs[0]) }), o.name)
			require.NoError(t, err)
		}
		return nil
	})
}

func TestWrong(t *testing.T) {
	d := emulated(t, 2, cudaemu.Config{})
	r := newRig(t, d, small(2), options(2))
	e := r.ranks[0].engine
	_, err := e.Compile(ring.AllReduce{N: 3}, 0)
	require.EqualError(t, err, "grid: a schedule of 3 ranks in a communicator of 2")
	_, err = New(d, r.ranks[0].ctx, 0, e.links, Options{})
	require.EqualError(t, err, "grid: 0 ranks")
	_, err = New(d, r.ranks[0].ctx, 0, e.links, Options{Rank: 2, Ranks: 2})
	require.EqualError(t, err, "grid: rank 2 of 2")
	_, err = New(d, r.ranks[0].ctx, 0, e.links, Options{Ranks: 2, Threads: 48})
	require.ErrorContains(t, err, "blocks of 48 threads")
	_, err = New(d, r.ranks[0].ctx, 0, e.links, Options{Ranks: 2, MinSlice: 100})
	require.ErrorContains(t, err, "slices of 100 bytes")
	user, err := kernels.NewReducer(kernels.Int8, kernels.UserOp("mine", func(kernels.DataType, []byte, []byte) {}), 2)
	require.NoError(t, err)
	var invalid *kernels.InvalidError
	require.ErrorAs(t, e.Prepare(user), &invalid)
	_, err = e.Compile(sched.Then(ring.AllReduce{N: 2}, endless{}), 0)
	var long *TooLongError
	require.ErrorAs(t, err, &long)
	require.ErrorContains(t, err, "take another algorithm")
}

// endless has more steps than shared memory holds.
type endless struct{}

func (endless) Shape() sched.Shape { return ring.AllReduce{N: 2}.Shape() }
func (endless) Len(sched.Rank) int { return 1 << 14 }
func (endless) At(sched.Rank, int) sched.Step {
	return sched.Step{Recv: sched.Nobody, Send: sched.Nobody, Src: sched.Ref{Buf: sched.In},
		Dst: sched.Ref{Buf: sched.Out}}
}

func TestArguments(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	m := r.ranks[0]
	good := r.prepare(allReduce(n), 1).jobs[0]
	varied := r.prepare(trial{name: "gather", schedule: ring.AllGather{N: n}, t: kernels.Float32, count: 70, varied: true},
		9).jobs[0]
	at := good.In.Ptr()
	tests := []struct {
		name   string
		job    Job
		change func(j *Job)
		want   string
	}{
		{"null", good, func(j *Job) { j.In = mem.Device(0, 0, 3600) }, "grid: device 0: in: null"},
		{"host", good, func(j *Job) { j.Out = mem.Host(make([]byte, 3600)) },
			"grid: device 0: out: host memory: register it and pass its device pointer"},
		{"short", good, func(j *Job) { j.Out = j.Out.Slice(0, 3000) },
			"grid: device 0: out: 3000 bytes, and its chunks take 3600"},
		{"misaligned", good, func(j *Job) { j.In = mem.Device(0, at+2, 3600) }, "is no multiple of the element's 4 bytes"},
		{"scalar", good, func(j *Job) { j.Scalar = 0x1001 },
			"grid: device 0: scalar: address 0x1001 is no multiple of the element's 4 bytes"},
		{"chunk", varied, func(j *Job) { j.Out = j.Out.Slice(0, 100) },
			"grid: device 0: out: 100 bytes, and chunk 0 is 280 bytes at 0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.change(&test.job)
			err := cuda.With(r.d, m.ctx, func() error { return carry(m.engine, &test.job) })
			var wrong *ArgumentError
			require.ErrorAs(t, err, &wrong)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// BenchmarkRun is what queuing takes apart from the driver.
func BenchmarkRun(b *testing.B) {
	const n = 2
	r := newRig(b, emulated(b, n, cudaemu.Config{}), small(n), options(n))
	o := r.prepare(allReduce(n), 1)
	m := r.ranks[0]
	m.engine.driver = quiet{r.d}
	r.with(m, func() error {
		for b.Loop() {
			if err := carry(m.engine, &o.jobs[0]); err != nil {
				return err
			}
		}
		return nil
	})
}
