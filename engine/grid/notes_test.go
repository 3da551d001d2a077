package grid

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// groups follow each other in the same queues: notes alone, some with what does not
// go as notes, and more of them than a queue holds.
func groups(n int) (all [][]parcel) {
	around := func(by int, sizes ...int) (p []parcel) {
		for r := range n {
			for _, size := range sizes {
				p = append(p, parcel{r, (r + by) % n, size})
			}
		}
		return p
	}
	return [][]parcel{
		around(1, 8), around(1, 480, 240), around(n-1, 100), around(1, 100, 2000, 7), around(0, 120),
		around(1, 1, 2, 3, 4, 5, 6, 7, 480, 0), around(1, 5000, 300), append(around(1, 33), around(n-1, 121)...),
	}
}

// TestNotes sends groups one after the other without waiting in between, first from
// a graph that is replayed, under many seeds.
func TestNotes(t *testing.T) {
	tier.Long(t)
	for seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { // a subtest gives its memory back
			n := 2 + int(seed%2)
			r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed}), small(n), options(n))
			var all []*posted
			for i, g := range groups(n) {
				all = append(all, r.post(g, seed+uint64(i)))
			}
			ring := r.prepare(trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum,
				count: 90}, seed)
			r.reset(ring)
			run := func(m *member) error {
				for i, p := range all {
					if i == 3 {
						require.NoError(t, carry(m.engine, &ring.jobs[m.rank]))
					}
					require.NoError(t, m.engine.RunMessages(p.jobs[m.rank]))
				}
				return nil
			}
			execs := make([]cuda.GraphExec, n)
			for i, m := range r.ranks {
				r.with(m, func() error {
					require.NoError(t, r.d.StreamBeginCapture(m.stream, cuda.CaptureThreadLocal))
					require.NoError(t, run(m))
					g, err := r.d.StreamEndCapture(m.stream)
					require.NoError(t, err)
					execs[i], err = r.d.GraphInstantiate(g, 0)
					require.NoError(t, err)
					return r.d.GraphDestroy(g)
				})
			}
			for turn := range 3 {
				for i, m := range r.ranks {
					r.with(m, func() error {
						if turn == 1 {
							return run(m)
						}
						return r.d.GraphLaunch(execs[i], m.stream)
					})
				}
				for _, p := range all {
					r.arrived(p)
				}
				if turn == 0 {
					r.check(ring)
				}
			}
			for i, m := range r.ranks {
				r.with(m, func() error { return r.d.GraphExecDestroy(execs[i]) })
			}
		})
	}
}

// TestNotesMismatch: a rank that waits for another message than comes finds out,
// whether either of them is a note or not.
func TestNotesMismatch(t *testing.T) {
	tier.Long(t)
	beside(t)
	const n, note, long = 2, 200, 3000
	other := transport.Stamp{7, 77}
	for _, test := range []struct {
		name       string
		send, recv []int // lengths; the first of them does not fit
		stamp      transport.Stamp
		program    bool // the receiver is at a collective
	}{
		{"another call", []int{note}, []int{note}, other, false},
		{"another length", []int{note}, []int{note + 8}, transport.Stamp{7, 0}, false},
		{"nothing", []int{0}, []int{note}, transport.Stamp{7, 0}, false},
		{"long for short", []int{long}, []int{note}, transport.Stamp{7, 0}, false},
		{"short for long", []int{note}, []int{long}, transport.Stamp{7, 0}, false},
		{"in a group", []int{note}, []int{note, long}, other, false},
		{"long for short in a group", []int{long}, []int{note, long}, other, false},
		{"from a group", []int{note, long}, []int{note}, other, false},
		{"for a collective", []int{note}, []int{note}, other, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			beside(t)
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), small(n), options(n))
			r.wipe()
			parcels := func(sizes []int) (p []parcel) {
				for _, size := range sizes {
					p = append(p, parcel{0, 1, size})
				}
				return p
			}
			sends, recvs := r.post(parcels(test.send), 1).jobs[0], r.post(parcels(test.recv), 1).jobs[1]
			sends[0].Stamp = test.stamp
			r.with(r.ranks[0], func() error { return r.ranks[0].engine.RunMessages(sends) })
			var want []transport.Stamp
			for _, j := range recvs {
				want = append(want, j.Stamp)
			}
			if test.program {
				o := r.prepare(trial{name: "broadcast", schedule: ring.Broadcast{N: n}, t: kernels.Float32, count: 10}, 1)
				r.reset(o)
				want = []transport.Stamp{o.jobs[1].Stamp}
				want[0][0] |= 1 << 32
				r.with(r.ranks[1], func() error { return carry(r.ranks[1].engine, &o.jobs[1]) })
			} else {
				r.with(r.ranks[1], func() error { return r.ranks[1].engine.RunMessages(recvs) })
			}
			c := r.ranks[1].engine.Control()
			require.Eventually(t, func() bool { return c.Fault() != nil }, patience(), time.Millisecond)
			r.ranks[0].engine.Control().Abort()
			r.sync()
			var step *engine.StepError
			var wrong *engine.MismatchError
			require.ErrorAs(t, c.Fault(), &step)
			require.ErrorAs(t, c.Fault(), &wrong)
			require.Equal(t, sched.Rank(0), step.Peer)
			require.Equal(t, "recv", step.Phase)
			require.Contains(t, want, wrong.Want)
			require.Equal(t, test.stamp, wrong.Got)
			require.True(t, c.Aborted())
		})
	}
}

// TestNotesMissing: notes that never come, or that nobody takes, leave a rank
// waiting until the host has it end.
func TestNotesMissing(t *testing.T) {
	const n = 2
	for _, test := range []struct {
		phase string
		rank  int
		notes int
	}{
		{"recv", 1, 1},
		{"send", 0, 5},
	} {
		t.Run(test.phase, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), small(n), options(n))
			p := r.post(make([]parcel, 0), 1)
			for range test.notes {
				p.jobs[test.rank] = append(p.jobs[test.rank], r.post([]parcel{{0, 1, 300}}, 1).jobs[test.rank]...)
			}
			m := r.ranks[test.rank]
			r.with(m, func() error { return m.engine.RunMessages(p.jobs[test.rank]) })
			control := m.engine.Control()
			r.stuck(m)
			require.NoError(t, control.Fault())
			control.Abort()
			r.sync()
			var step *engine.StepError
			require.ErrorAs(t, control.Fault(), &step)
			require.ErrorIs(t, step, ErrAborted)
			require.Equal(t, sched.Rank(1-test.rank), step.Peer)
			require.Equal(t, test.phase, step.Phase)
		})
	}
}

// TestNotesBroken takes out, one at a time, what notes rest on, and has the results
// be wrong or the emulator complain.
func TestNotesBroken(t *testing.T) {
	tier.Long(t)
	if gputest.OnGPU() {
		t.Skip("a GPU would not say what is wrong, but stop working")
	}
	const n = 2
	for _, test := range []struct{ name, pattern, new string }{
		{"the flag is stored by itself", `st\.volatile\.global\.v2\.u64 \[(%rd\d+)\], \{(%rd\d+), (%rd\d+)\};`,
			"st.volatile.global.u64 [$1], $2; st.volatile.global.u64 [$1+8], $3;"},
		{"threads of a line look one after the other", `bar\.warp\.sync[ \t]+-1;`, ""},
		{"lines are stored weakly", `st\.volatile\.global\.v2`, "st.global.v2"},
		{"slots are released before all have read them", `bar\.red\.or\.pred q, 0, p;`, "vote.sync.any.pred q, p, -1;"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := false
			for seed := uint64(0); seed < 40 && !found; seed++ {
				d := gputest.Driver(t, gputest.Faults(),
					gputest.Emu(cudaemu.Config{Devices: n, Seed: seed, StallInstructions: 1000}))
				board := small(n)
				board.Near = Geometry{Lanes: 1, Slots: 2, SlotBytes: 256, NoteBytes: 2 << 10}
				board.Far = board.Near
				r := newRig(t, d, board, options(n))
				for _, m := range r.ranks {
					m.engine.text = func(name ptx.Name) ([]byte, error) {
						text, err := ptx.Text(name)
						broken := regexp.MustCompile(test.pattern).ReplaceAll(text, []byte(test.new))
						require.NotEqual(t, string(text), string(broken))
						return broken, err
					}
				}
				var notes []parcel
				for range 8 {
					notes = append(notes, parcel{0, 1, 1900})
				}
				p := r.post(notes, seed)
				for i, m := range r.ranks {
					_ = cuda.With(d, m.ctx, func() error { found = m.engine.RunMessages(p.jobs[i]) != nil || found; return nil })
				}
				for _, m := range r.ranks {
					_ = cuda.With(d, m.ctx, func() error { found = d.StreamSynchronize(m.stream) != nil || found; return nil })
				}
				for _, c := range p.checks {
					got := make([]byte, len(c.want))
					_ = cuda.With(d, c.m.ctx, func() error { found = d.MemcpyDtoH(got, c.at) != nil || found; return nil })
					found = found || difference(c.want, got) >= 0
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
