package grid

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// TestIndependence: which ranks' steps may happen side by side.
func TestIndependence(t *testing.T) {
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	for _, test := range []struct {
		name     string
		schedule sched.Schedule
		want     [n]bool
	}{
		{"alltoall", direct.AlltoAll{N: n}, [n]bool{true, true, true}},
		{"allgather", direct.AllGather{N: n}, [n]bool{true, true, true}},
		{"gather", direct.Gather{N: n, Root: 1}, [n]bool{false, true, false}}, // a single message gains nothing
		{"scatter", direct.Scatter{N: n, Root: 2}, [n]bool{false, false, true}},
		{"reduces", direct.ReduceScatter{N: n}, [n]bool{}},
		{"passes on", ring.AllGather{N: n}, [n]bool{}},
		{"two of a pair", sched.Then(direct.AlltoAll{N: n}, direct.AlltoAll{N: n}), [n]bool{}},
	} {
		for i, p := range r.program(test.name, test.schedule) {
			require.Equal(t, test.want[i], p.independent, "%s, rank %d", test.name, i)
		}
	}
}

// TestIndependent runs collectives of independent steps side by side, on few blocks
// and many, with ranks among them that take the steps in their order.
func TestIndependent(t *testing.T) {
	tier.Long(t)
	const n = 3
	trials := []trial{
		{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, count: 2500, in: 1, out: 3},
		{name: "alltoall, nothing", schedule: direct.AlltoAll{N: n}, shares: true},
		{name: "alltoallv", schedule: direct.AlltoAll{N: n}, shares: true, count: 700, varied: true},
		{name: "allgather", schedule: direct.AllGather{N: n}, shares: true, count: 1111},
		{name: "allgather in place", schedule: direct.AllGather{N: n}, shares: true, count: 1111, inPlace: true},
		{name: "allgatherv", schedule: direct.AllGather{N: n}, shares: true, count: 900, varied: true},
		{name: "gather", schedule: direct.Gather{N: n}, shares: true, count: 1500},
		{name: "scatter", schedule: direct.Scatter{N: n, Root: 1}, shares: true, count: 1500},
	}
	for seed, blocks := range []int{0, 1, 5} {
		for _, inOrder := range []sched.Rank{sched.Nobody, 1} {
			t.Run(fmt.Sprint(blocks, " blocks, in order ", inOrder), func(t *testing.T) {
				o := options(n)
				o.Blocks = blocks
				r := newRig(t, emulated(t, n, cudaemu.Config{Seed: uint64(seed)}), small(n), o)
				var all []worker
				for i, x := range trials {
					x.t = kernels.Int8
					all = append(all, r.prepare(x, uint64(i)))
					if inOrder != sched.Nobody {
						r.programs[x.name][inOrder].independent = false
					}
					r.reset(all[i])
				}
				r.run(all...)
				r.check(all...)
			})
		}
	}
}

// TestEach: messages that each have a stamp of their own go as messages on a rank that takes several launches for them,
// too.
func TestEach(t *testing.T) {
	const n = 3
	o := options(n)
	o.Blocks = 1
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), o)
	x := r.prepare(trial{name: "alltoallv", schedule: direct.AlltoAll{N: n}, shares: true, count: 700, varied: true,
		t: kernels.Int8}, 1)
	for i := range x.jobs {
		x.jobs[i].Each = func(s transport.Stamp, bytes int) transport.Stamp {
			s[1] += uint64(bytes)
			return s
		}
	}
	r.ranks[0].engine.maxShared = 4 * (portBytes + taskBytes)
	require.False(t, r.ranks[0].engine.atOnce(&x.jobs[0]))
	require.True(t, r.ranks[1].engine.atOnce(&x.jobs[1]))
	r.reset(x)
	r.run(x)
	r.check(x)
}

// TestApart: where a message would arrive in memory that is yet to be sent, steps
// keep their order.
func TestApart(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	for _, inPlace := range []bool{false, true} {
		o := r.prepare(trial{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 10,
			inPlace: inPlace}, 1)
		require.Equal(t, !inPlace, o.jobs[0].disjoint())
	}
	o := r.prepare(trial{name: "allgather", schedule: direct.AllGather{N: n}, shares: true, t: kernels.Int8, count: 10,
		inPlace: true}, 1)
	require.True(t, o.jobs[1].disjoint())
}

// TestIndependentMismatch: ranks that wait for each other in different calls, or for
// a message of another length, find out.
func TestIndependentMismatch(t *testing.T) {
	const n = 3
	gather := func(root sched.Rank, count int) trial {
		return trial{name: fmt.Sprint("gather ", root), schedule: direct.Gather{N: n, Root: root}, shares: true,
			t: kernels.Int8, count: count}
	}
	for _, test := range []struct {
		name   string
		trials [n]trial
		want   int // rank that says so
	}{
		{"two roots", [n]trial{gather(0, 40), gather(1, 40), gather(0, 40)}, 1},
		{"another length", [n]trial{gather(0, 40), gather(0, 40), gather(0, 60)}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
			r.wipe()
			for i, m := range r.ranks {
				o := r.prepare(test.trials[i], 1)
				r.reset(o)
				j := &o.jobs[i]
				j.Stamp = transport.Stamp{9 << 32,
					uint64(test.trials[i].count)<<8 | uint64(test.trials[i].schedule.(direct.Gather).Root)}
				r.with(m, func() error { return carry(m.engine, j) })
			}
			r.sync()
			var wrong *engine.MismatchError
			require.ErrorAs(t, r.ranks[test.want].engine.Control().Fault(), &wrong)
		})
	}
}
