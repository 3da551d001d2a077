package grid

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// TestDirectMismatch: ranks that run different direct operations, or one of them
// a program, find out.
func TestDirectMismatch(t *testing.T) {
	const n = 2
	const number = 1 << 32 // as the device counts
	run := func(r *rig, d Direct, rank int) error {
		x := directTrial{d: d, t: kernels.Float32, count: 20}
		if d.Reduces() {
			x.op = &kernels.Sum
		}
		o := r.mail(x, 1)
		r.resetDirect(o)
		o.jobs[rank].Stamp = transport.Stamp{0, uint64(rank)}
		return cuda.With(r.d, r.ranks[rank].ctx,
			func() error { return r.ranks[rank].engine.RunDirect(&o.jobs[rank], d, 0, 80) })
	}
	for _, test := range []struct {
		name   string
		second func(r *rig) error
	}{
		{"direct", func(r *rig) error { return run(r, AllGather, 1) }},
		{"program", func(r *rig) error {
			o := r.prepare(trial{name: "broadcast", schedule: ring.Broadcast{N: n}, t: kernels.Float32, count: 10}, 1)
			r.reset(o)
			o.jobs[1].Stamp = transport.Stamp{0, 1}
			return cuda.With(r.d, r.ranks[1].ctx, func() error { return carry(r.ranks[1].engine, &o.jobs[1]) })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for turn := range 2 * seeds() {
				r := newRig(t, emulated(t, n, cudaemu.Config{Link: link(turn), Seed: turn / 2}), mailed(n), options(n))
				r.wipe()
				require.NoError(t, run(r, OneShot, 0))
				require.NoError(t, test.second(r))
				r.sync()
				for i, m := range r.ranks {
					step, wrong := mismatch(t, m.engine.Control())
					require.EqualValues(t, 1-i, step.Peer)
					require.Equal(t, transport.Stamp{number, uint64(i)}, wrong.Want)
					require.Equal(t, transport.Stamp{number, uint64(1 - i)}, wrong.Got)
					require.True(t, m.engine.Control().Aborted())
				}
			}
		})
	}
}

// TestDirectUnsigned: without sign boards lines tell calls apart.
func TestDirectUnsigned(t *testing.T) {
	const n = 2
	for turn := range uint64(2) {
		r := newRig(t, emulated(t, n, cudaemu.Config{Link: link(turn)}), mailed(n), options(n))
		for _, m := range r.ranks {
			m.engine.signs = 0
		}
		o := r.mail(letters(n)[0], 1)
		r.resetDirect(o)
		for i := range o.jobs {
			o.jobs[i].Stamp = transport.Stamp{1, uint64(i)}
		}
		r.runDirect(o)
		r.sync()
		for i, m := range r.ranks {
			_, wrong := mismatch(t, m.engine.Control())
			require.Equal(t, transport.Stamp{1<<32 | 1, uint64(i)}, wrong.Want)
		}
	}
}

// TestDirectMissing: a rank that never comes leaves the others waiting until the
// host ends them, with all blocks and later work on the stream.
func TestDirectMissing(t *testing.T) {
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1, Link: link(1)}), mailed(n), options(n))
	o := r.mail(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 300}, 1)
	r.resetDirect(o)
	for range 3 {
		for i, m := range r.ranks[:n-1] {
			r.with(m, func() error { return m.engine.RunDirect(&o.jobs[i], o.d, 0, 1200) })
		}
	}
	require.Equal(t, sched.Rank(2), r.endStuck(r.ranks[0], 3).Peer)
}

// TestDirectGone: of a rank that has left nothing is awaited but data.
func TestDirectGone(t *testing.T) {
	const n, gone = 3, 2
	for turn := range uint64(2) {
		for _, x := range []directTrial{
			{d: Broadcast, t: kernels.Float32, count: 300},
			{d: Broadcast, root: 1, t: kernels.Int8, count: 9001, inPlace: true}, // several rounds
			{d: Reduce, root: gone, t: kernels.Float32, op: &kernels.Sum, count: 40},
			{d: AllGather, t: kernels.Int8, count: 5},
		} {
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1, Link: link(turn)}), mailed(n), options(n))
			o := r.mail(x, 1)
			r.resetDirect(o)
			o.want[gone] = o.fresh[gone]
			for i, m := range r.ranks[:gone] {
				r.with(m, func() error { return m.engine.RunDirect(&o.jobs[i], o.d, o.root, o.count*o.t.Size()) })
			}
			r.stuck(r.ranks[0])
			for _, m := range r.ranks[:gone] {
				m.engine.Control().Gone(gone)
			}
			if x.d == AllGather {
				require.Equal(t, sched.Rank(gone), r.endStuck(r.ranks[0], 1).Peer)
			} else {
				r.checkDirect(o)
			}
		}
	}
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
		torn         bool
	}{
		{"the flag is stored by itself", `st\.volatile\.global\.v2\.u64 \[(%rd\d+)\], \{(%rd\d+), (%rd\d+)\};`,
			"st.volatile.global.u64 [$1], $2; st.volatile.global.u64 [$1+8], $3;", false},
		{"lines are loaded word by word", `ld\.volatile\.global\.v2\.u64 \{(%rd\d+), (%rd\d+)\}, \[(%rd\d+)\];`,
			"ld.volatile.global.u64 $1, [$3]; ld.volatile.global.u64 $2, [$3+8];", false},
		{"lines are stored weakly", `st\.volatile\.global\.v2`, "st.global.v2", false},
		{"lines are loaded weakly", `ld\.volatile\.global\.v2`, "ld.global.v2", false},
		{"epochs are written before others have read them", `bar\.sync 0;`, "", false},
		{"lines that tear are stored weakly", `st\.volatile\.global\.v2`, "st.global.v2", true},
		{"lines that tear have a flag alone", ` -2960836687051489901;`, " 0;", true},
		{"lines that tear have digests of one half", `shfl\.sync\.bfly\.b32 (%r\d+), %r\d+, 4, 31, -1;`, "mov.u32 $1, 0;",
			true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found := false
			for seed := uint64(0); seed < 20 && !found; seed++ {
				c := cudaemu.Config{Devices: n, Seed: seed, StallInstructions: 1000, Link: link(0)}
				if test.torn {
					c.Link = link(1)
				}
				d := gputest.Driver(t, gputest.Faults(), gputest.Emu(c))
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
			require.Zero(t, testing.AllocsPerRun(20,
				func() { err = m.engine.RunDirect(&o.jobs[0], o.d, o.root, o.count*o.t.Size()) }), o.d)
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
		{"kind", all, Scatter + 1, 0, 40, func(*Job) {}, "direct(9)"},
		{"root", all, Broadcast, 2, 40, func(*Job) {}, "root 2 of 2 ranks"},
		{"reducer", all, TwoShot, 0, 40, func(*Job) {}, "needs a reducer"},
		{"no reducer", sum, AllGather, 0, 40, func(*Job) {}, "needs a reducer"},
		{"null", sum, TwoShot, 0, 40, func(j *Job) { j.In = j.In.Slice(0, 0) }, "in: 0 bytes, and the operation takes 40"},
		{"short", all, AllGather, 0, 40, func(j *Job) { j.Out = j.Out.Slice(0, 79) },
			"out: 79 bytes, and the operation takes 80"},
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
