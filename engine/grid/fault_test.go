// Ranks that differ or never come, and wrong arguments.

package grid

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/ring"
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

// TestMismatch: ranks that run different calls, or the same of different lengths, find out, and say so with both;
// whether they move by threads, by bulk copies, or one by each, or by kernels that linger.
func TestMismatch(t *testing.T) {
	const n = 2
	same, other := transport.Stamp{1<<32 | 1, 5}, transport.Stamp{1<<32 | 1, 77}
	for _, test := range []struct {
		name   string
		change func(j *Job)
		want   engine.MismatchError
	}{
		{"another call", func(j *Job) { j.Stamp = transport.Stamp{1, 77} },
			engine.MismatchError{Want: same, Got: other, WantBytes: 256, GotBytes: 256}},
		{"another length", func(j *Job) { j.InL = engine.Even(40, n, 4); j.OutL = j.InL },
			engine.MismatchError{Want: same, Got: same, WantBytes: 256, GotBytes: 20}},
		{"nothing at all", func(j *Job) { j.InL = engine.Layout{}; j.OutL = j.InL },
			engine.MismatchError{Want: same, Got: same, WantBytes: 256}},
	} {
		for _, by := range []string{"threads", "bulk copies", "bulk copies of rank 0", "bulk copies of rank 1", "lingering"} {
			t.Run(test.name+" by "+by, func(t *testing.T) {
				o := bulkOptions(n)
				if by == "lingering" {
					o = lingering(n, 10*time.Microsecond)
				}
				r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), o)
				r.bulky(func(rank int) bool { return by != "threads" && by != fmt.Sprint("bulk copies of rank ", 1-rank) })
				r.wipe()
				x := r.prepare(allReduce(n), 5)
				test.change(&x.jobs[1])
				r.reset(x)
				r.run(x)
				c := r.ranks[0].engine.Control()
				require.Eventually(t, func() bool { return c.Fault() != nil }, 10*time.Second, time.Millisecond)
				step, wrong := mismatch(t, c)
				require.Equal(t, sched.Rank(1), step.Peer)
				require.Equal(t, "recv", step.Phase)
				want := test.want
				if want.Got != want.Want && wrong.WantBytes == 0 && wrong.GotBytes == 0 {
					want.WantBytes, want.GotBytes = 0, 0 // the sign boards told first, and know no lengths
				}
				require.Equal(t, want, *wrong)
				require.Eventually(t, c.Aborted, 10*time.Second, time.Millisecond)
				r.ranks[1].engine.Control().Abort() // as a communicator does that hears of it
				r.sync()
			})
		}
	}
}

// TestDiffer: ranks that run different things, or wait for each other in different calls, find out by themselves, and
// name both calls where there are sign boards; direct kernels name their own by their lines.
func TestDiffer(t *testing.T) {
	const n = 2
	type maker func(r *rig) worker
	broadcast := func(root sched.Rank) maker {
		x := trial{name: fmt.Sprint("broadcast ", root), schedule: ring.Broadcast{N: n, Root: root}, t: kernels.Float32,
			count: 10}
		return func(r *rig) worker { return r.prepare(x, 1) }
	}
	directly := func(d Direct, op *kernels.RedOp, count int) maker {
		x := directTrial{d: d, t: kernels.Float32, op: op, count: count}
		return func(r *rig) worker { return r.prepareDirect(x, 1) }
	}
	inWindow := func(d Direct, op *kernels.RedOp, copies bool) maker {
		x := directTrial{d: d, t: kernels.Float32, op: op, count: 900}
		return func(r *rig) worker { return r.prepareWindow(x, copies, 1) }
	}
	elsewhere := func(r *rig) worker {
		o := r.prepareWindow(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 900}, false, 1)
		for i := range o.in.Window.At {
			o.in.Window.At[i] -= 16
		}
		o.in.Offset, o.out.Offset = o.in.Offset+16, o.out.Offset+16
		return o
	}
	oneShot, sum := directly(OneShot, &kernels.Sum, 20), inWindow(TwoShot, &kernels.Sum, false)
	for _, test := range []struct {
		name          string
		first, second maker
		signs, names  bool // names: also without signs
	}{
		{"crossed", broadcast(1), broadcast(0), true, true},
		{"direct", oneShot, directly(AllGather, nil, 20), true, true},
		{"direct and program", oneShot, broadcast(0), true, true},
		{"direct without signs", oneShot, oneShot, false, true},
		{"windows", sum, inWindow(AllGather, nil, false), true, true},
		{"windows and copies", sum, inWindow(AllGather, nil, true), true, true},
		{"windows and direct", sum, directly(AllGather, nil, 900), true, true},
		{"windows without signs", sum, inWindow(AllGather, nil, false), false, false},
		{"places in windows", sum, elsewhere, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			turns := uint64(2)
			if strings.HasPrefix(test.name, "direct") {
				turns *= seeds()
			}
			for turn := range turns {
				r := newRig(t, emulated(t, n, cudaemu.Config{Link: link(turn), Seed: turn / 2}), mailed(n), options(n))
				narrow(r)
				r.wipe()
				first, second := test.first(r), test.second(r)
				r.reset(first, second)
				first.base().jobs[0].Stamp, second.base().jobs[1].Stamp = transport.Stamp{3, 0}, transport.Stamp{3, 1}
				if test.name == "places in windows" {
					second.base().jobs[1].Stamp[1] = 0
				}
				for _, m := range r.ranks {
					m.engine.signs *= uintptr(only(test.signs, 1))
				}
				r.runOn(r.ranks[:1], first)
				r.runOn(r.ranks[1:], second)
				r.sync()
				for i, m := range r.ranks {
					step, wrong := mismatch(t, m.engine.Control())
					require.True(t, m.engine.Control().Aborted())
					if test.names {
						require.EqualValues(t, 1-i, step.Peer)
						require.Equal(t, transport.Stamp{1<<32 | 3, uint64(i)}, wrong.Want)
					}
					if test.signs {
						require.Equal(t, transport.Stamp{1<<32 | 3, uint64(1 - i)}, wrong.Got)
					}
				}
				r.close()
			}
		})
	}
}

func TestWrong(t *testing.T) {
	d := emulated(t, 2, cudaemu.Config{})
	r := newRig(t, d, small(2), options(2))
	e := r.ranks[0].engine
	_, err := e.Compile(ring.AllReduce{N: 3}, 0)
	require.EqualError(t, err, "grid: a schedule of 3 ranks in a communicator of 2")
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
