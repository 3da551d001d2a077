package grid

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// groups follow each other in the same queues: notes alone, some with what does not
// go as notes, and more of them than a queue holds.
func groups(n int) (all [][]sending) {
	around := func(by int, sizes ...int) (p []sending) {
		for r := range n {
			for _, size := range sizes {
				p = append(p, sending{r, (r + by) % n, size})
			}
		}
		return p
	}
	return [][]sending{
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
			works := func(seed uint64) (all []worker) {
				for i, g := range groups(n) {
					all = append(all, r.prepareGroup(g, false, seed+uint64(i)))
				}
				return append(all, r.prepare(mixed(n)[0], seed))
			}
			r.mix(works(seed), works(seed+1))
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
			group := func(sizes []int) (p []sending) {
				for _, size := range sizes {
					p = append(p, sending{0, 1, size})
				}
				return p
			}
			sends, recvs := r.prepareGroup(group(test.send), false, 1).messages[0],
				r.prepareGroup(group(test.recv), false, 1).messages[1]
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
			step, wrong := mismatch(t, c)
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
			p := r.prepareGroup(slices.Repeat([]sending{{0, 1, 300}}, test.notes), false, 1)
			m := r.ranks[test.rank]
			r.runOn([]*member{m}, p)
			step := r.endStuck(m, 1)
			require.Equal(t, sched.Rank(1-test.rank), step.Peer)
			require.Equal(t, test.phase, step.Phase)
		})
	}
}
