package grid

import (
	"fmt"
	"testing"

	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/hier"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

// A scheduled is a schedule and what the tests do with it.
type scheduled struct {
	name    string
	make    func(n int) sched.Schedule
	reduces bool
	shares  bool // see trial
	inPlace bool // has such a form
}

// collectives are all schedules there are.
func collectives() []scheduled {
	root := func(n int) sched.Rank { return sched.Rank(n / 2) }
	return []scheduled{
		{"ring allreduce", func(n int) sched.Schedule { return ring.AllReduce{N: n} }, true, false, true},
		{"ring allgather", func(n int) sched.Schedule { return ring.AllGather{N: n} }, false, true, true},
		{"ring reducescatter", func(n int) sched.Schedule { return ring.ReduceScatter{N: n} }, true, true, true},
		{"ring broadcast", func(n int) sched.Schedule { return ring.Broadcast{N: n, Root: root(n)} }, false, false, true},
		{"ring reduce", func(n int) sched.Schedule { return ring.Reduce{N: n, Root: root(n)} }, true, false, true},
		{"tree allreduce", func(n int) sched.Schedule { return tree.AllReduce{N: n} }, true, false, true},
		{"tree broadcast", func(n int) sched.Schedule { return tree.Broadcast{N: n, Root: root(n)} }, false, false, true},
		{"tree reduce", func(n int) sched.Schedule { return tree.Reduce{N: n, Root: root(n)} }, true, false, true},
		{"binomial broadcast", func(n int) sched.Schedule { return tree.BinomialBroadcast{N: n, Root: root(n)} }, false,
			false, true},
		{"binomial reduce", func(n int) sched.Schedule { return tree.BinomialReduce{N: n, Root: root(n)} }, true,
			false, true},
		{"oneshot", func(n int) sched.Schedule { return direct.OneShot{N: n} }, true, false, true},
		{"twoshot", func(n int) sched.Schedule { return direct.TwoShot{N: n} }, true, false, true},
		{"doubling", func(n int) sched.Schedule { return direct.RecursiveDoubling{N: n} }, true, false, true},
		{"halving", func(n int) sched.Schedule { return direct.HalvingDoubling{N: n} }, true, false, true},
		{"log allgather", func(n int) sched.Schedule { return direct.LogAllGather{N: n} }, false, true, true},
		{"log reducescatter", func(n int) sched.Schedule { return direct.LogReduceScatter{N: n} }, true, true, true},
		{"direct allgather", func(n int) sched.Schedule { return direct.AllGather{N: n} }, false, true, true},
		{"direct reducescatter", func(n int) sched.Schedule { return direct.ReduceScatter{N: n} }, true, true, true},
		{"alltoall", func(n int) sched.Schedule { return direct.AlltoAll{N: n} }, false, true, false},
		{"gather", func(n int) sched.Schedule { return direct.Gather{N: n, Root: root(n)} }, false, true, true},
		{"scatter", func(n int) sched.Schedule { return direct.Scatter{N: n, Root: root(n)} }, false, true, true},
	}
}

// hierarchies are of 2 nodes of 2 ranks.
func hierarchies() []scheduled {
	return []scheduled{
		{"hier allreduce", func(int) sched.Schedule {
			return hier.AllReduce(ring.ReduceScatter{N: 2}, ring.AllReduce{N: 2}, ring.AllGather{N: 2})
		}, true, false, true},
		{"hier broadcast", func(int) sched.Schedule {
			return hier.Broadcast(tree.Broadcast{N: 2}, ring.Broadcast{N: 2, Root: 1}, 1)
		}, false, false, true},
		{"hier reduce", func(int) sched.Schedule { return hier.Reduce(ring.Reduce{N: 2, Root: 1}, tree.Reduce{N: 2}, 1) },
			true, false, true},
		{"hier allgather", func(int) sched.Schedule { return hier.AllGather(ring.AllGather{N: 2}, direct.AllGather{N: 2}) },
			false, true, true},
		{"hier reducescatter", func(int) sched.Schedule {
			return hier.ReduceScatter(direct.ReduceScatter{N: 2}, ring.ReduceScatter{N: 2})
		}, true, true, true},
	}
}

// TestSchedules compares every schedule with the host's engine, bit for bit: sums
// of bfloat16, which round.
func TestSchedules(t *testing.T) {
	tier.Long(t)
	for _, n := range tier.Some(3, []int{4, 1, 2, 3}) {
		all := collectives()
		if n == 4 {
			all = append(all, hierarchies()...)
		}
		cfg := cudaemu.Config{Seed: uint64(n), Link: link(uint64(n)), Plain: unchecked(n != 3)}
		r := newRig(t, emulated(t, n, cfg), small(n),
			options(n))
		for i, c := range all {
			r.sub(fmt.Sprintf("%s/%d", c.name, n), func() {
				x := trial{name: c.name, schedule: c.make(n), shares: c.shares, t: kernels.BFloat16}
				if c.reduces {
					x.op = &kernels.Sum
				}
				x.count = 999
				if c.shares {
					x.count = 555
				}
				if tier.Pairs() || (i+n)%2 == 0 {
					r.try(x, uint64(i))
				}
				x.count, x.inPlace, x.in, x.out = 7, c.inPlace, 1, 3
				if tier.Pairs() || (i+n)%2 == 1 {
					r.try(x, uint64(i))
				}
			})
		}
	}
}
