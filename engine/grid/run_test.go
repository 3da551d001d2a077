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

// TestSchedules compares every schedule with the host's engine, bit for bit: sums of bfloat16, which round. Slices are
// moved by threads, by bulk copies, or by bulk copies of every other rank.
func TestSchedules(t *testing.T) {
	tier.Long(t)
	type setup struct {
		n    int
		bulk int // 0: none, 1: all, 2: every other rank
	}
	setups := append(tier.Some(3, []setup{{4, 0}, {1, 0}, {2, 0}, {3, 0}}),
		tier.Some(5, []setup{{3, 2}, {4, 1}, {2, 1}, {4, 2}, {1, 1}})...)
	for _, x := range setups {
		all, o := collectives(), options(x.n)
		if x.n == 4 {
			all = append(all, hierarchies()...)
		}
		if x.bulk > 0 {
			o = bulkOptions(x.n)
		}
		// The order of accesses is checked for some, and for bulk copies in TestBulkOrders for more.
		cfg := cudaemu.Config{Seed: uint64(x.n), Link: link(uint64(x.n)), Plain: unchecked(x.n != 3-min(1, x.bulk))}
		r := newRig(t, emulated(t, x.n, cfg), small(x.n), o)
		if x.bulk > 0 {
			r.bulky(func(rank int) bool { return rank%x.bulk == 0 })
		}
		for i, c := range all {
			if c.reduces && x == (setup{4, 2}) {
				continue
			}
			r.sub(fmt.Sprintf("%s/%d/bulk %d", c.name, x.n, x.bulk), func() {
				whole := trial{name: c.name, schedule: c.make(x.n), shares: c.shares, t: kernels.BFloat16, count: 999}
				if c.reduces {
					whole.op = &kernels.Sum
				}
				inPlace, off, few := whole, whole, whole
				inPlace.inPlace = c.inPlace
				off.count, off.in, off.out = 37, 1, 3
				few.count, few.inPlace, few.in, few.out = 7, c.inPlace, 1, 3
				for k, y := range []trial{off, whole, inPlace, few} {
					if x.n < 4 && tier.Pairs() || (i+k)%3 == 0 { // four ranks take long
						r.try(y, uint64(i))
					}
				}
				if c.shares && (!c.reduces || c.name == "ring reducescatter") && x.bulk > 0 && (tier.Pairs() || i%2 == 0) {
					whole.count, whole.varied = 555, true
					r.try(whole, uint64(i))
				}
			})
		}
	}
}
