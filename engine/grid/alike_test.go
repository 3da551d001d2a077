// What holds for works of all kinds alike.

package grid

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

// seeds is how many orders of execution are tried: RINGO_SEEDS, or a few; on a GPU, which has its own orders, one for
// each number of ranks.
func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("RINGO_SEEDS"), 10, 32); err == nil {
		return n
	}
	if gputest.OnGPU() || tier.Race {
		return 3
	}
	return uint64(tier.Count(2, 8))
}

// mixed are schedules that follow each other in the same queues.
func mixed(n int) []trial {
	return []trial{
		{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 900},
		{name: "tree", schedule: tree.AllReduce{N: n}, t: kernels.BFloat16, op: &kernels.Avg, count: 77, inPlace: true},
		{name: "oneshot", schedule: direct.OneShot{N: n}, t: kernels.Int32, op: &kernels.Sum, count: 5},
		{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 333, in: 1},
	}
}

// directTrials are direct operations that follow each other in the same mailboxes, on grids of different sizes.
func directTrials(n int) []directTrial {
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

// windowTrials are operations that follow each other in windows, on grids of different sizes.
func windowTrials(n int) []directTrial {
	last := sched.Rank(n - 1)
	return []directTrial{
		{d: TwoShot, t: kernels.BFloat16, op: &kernels.Sum, count: 700, inPlace: true},
		{d: Broadcast, root: last, t: kernels.Int8, count: 3003},
		{d: ReduceScatter, t: kernels.Int32, op: &kernels.Avg, count: 171, in: 1},
		{d: AllGather, t: kernels.Int8, count: 3000, out: 1},
		{d: Gather, root: last, t: kernels.Float32, count: 200},
		{d: Broadcast, t: kernels.Float32, count: 500, inPlace: true},
		{d: Scatter, t: kernels.Int8, count: 77},
		{d: Reduce, root: last, t: kernels.BFloat16, op: &kernels.Max, count: 90},
		{d: AllToAll, t: kernels.Float32, count: 55, inPlace: true},
		{d: TwoShot, t: kernels.Int32, op: &kernels.Avg, count: 250},
		{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 250},
		{d: AllToAll, t: kernels.Float32, count: 155},
	}
}

// wide has direct kernels with grids of several blocks.
func wide(r *rig) {
	for _, m := range r.ranks {
		m.engine.directKernels.shapes = func(d Direct, _, lines int) (blocks, threads int) {
			return 1 + int(d)%3, 32 + lines%2*32
		}
	}
}

// works makes a sequence of works, by which kind of kernel most are carried out: some of them alone, or all of them.
func works(r *rig, kind string, seed uint64, all bool) (list []worker) {
	n := len(r.ranks)
	wide(r)
	narrow(r)
	schedule := func() worker { return r.prepare(mixed(n)[0], seed) }
	switch kind {
	case "schedules":
		for i, x := range mixed(n) {
			list = append(list, r.prepare(x, seed+uint64(i)))
		}
		if all {
			list = append(list, r.prepare(trial{name: "varied", schedule: ring.AllGather{N: n}, t: kernels.Float32, count: 70,
				varied: true}, 9))
		}
	case "direct":
		for i, x := range directTrials(n) {
			if all || (i+int(seed))%3 > 0 {
				list = append(list, r.prepareDirect(x, 10*seed+uint64(i)))
			}
			if i == 2 {
				list = append(list, schedule())
			}
		}
	case "windows":
		for i, x := range windowTrials(n) {
			turn := i + int(seed)
			if !all && turn%3 == 0 {
				continue
			}
			list = append(list, r.prepareWindow(x, turn%2 == 0 && r.copies(x), 10*seed+uint64(i)))
			if turn%4 == 0 && r.ranks[0].engine.CanDirect() {
				list = append(list, r.prepareDirect(directTrials(n)[i%len(directTrials(n))], 10*seed+uint64(i)+5))
			}
		}
	}
	return list
}

var kindsOfWorks = []string{"schedules", "direct", "windows"}

// TestOrders runs operations one after the other without waiting in between, under the emulator's strict memory and
// many seeds, over both kinds of links.
func TestOrders(t *testing.T) {
	for _, kind := range kindsOfWorks {
		for seed := range seeds() {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) { // a subtest gives its memory back
				if kind == "windows" {
					tier.Long(t)
				}
				n := 2 + int(seed%3)
				r := newRig(t, emulated(t, n, cudaemu.Config{Seed: seed, Link: link(seed + seed/2)}), mailed(n), options(n))
				r.inTurn(works(r, kind, seed, false)...)
			})
		}
	}
}

// TestGraphs mixes replays of graphs with operations that are not captured. The first ever run of a kernel is in a
// capture.
func TestGraphs(t *testing.T) {
	tier.Long(t)
	const n = 3
	for _, kind := range kindsOfWorks {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), options(n))
			r.mix(works(r, kind, 1, true), works(r, kind, 102, true))
		})
	}
}

// TestSharedDevice has three ranks on one device. All is loaded and allocated before the first kernel waits for
// another: on hardware loads would wait for that kernel.
func TestSharedDevice(t *testing.T) {
	const n = 3
	for _, kind := range kindsOfWorks {
		t.Run(kind, func(t *testing.T) {
			r := newRigOn(t, emulated(t, 1, cudaemu.Config{}), 1, mailed(n), options(n))
			all := works(r, kind, 1, true)
			for _, w := range all {
				for i, m := range r.ranks {
					red := w.base().jobs[i].Reducer
					r.with(m, func() error {
						return errors.Join(m.engine.Prepare(red), m.engine.Prepare(nil), m.engine.PrepareDirect(red),
							m.engine.PrepareWindow(red), m.engine.PrepareWindow(nil))
					})
				}
			}
			r.inTurn(all...)
		})
	}
}

// TestMissing: a rank that never comes leaves the others waiting, with all blocks and slices under way, until the host
// ends them. Then they say for whom they waited, later work on the stream ends too, and the context is still usable.
func TestMissing(t *testing.T) {
	const n = 3
	scatter := trial{name: "scatter", schedule: direct.Scatter{N: n, Root: 0}, shares: true, t: kernels.Float32, count: 2000}
	gather := directTrial{d: AllGather, t: kernels.Float32, count: 300}
	inOrder := func(r *rig) worker {
		w := r.prepare(scatter, 1)
		r.programs["scatter"][0].independent = false
		return w
	}
	for _, test := range []struct {
		name  string
		bulk  bool
		make  func(r *rig) worker
		phase string
	}{
		{"receiving", false, func(r *rig) worker { return r.prepare(allReduce(n), 1) }, "recv"},
		{"sending", false, func(r *rig) worker { return r.prepare(scatter, 1) }, "send"},
		{"bulk copies, receiving", true, func(r *rig) worker {
			return r.prepare(trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: kernels.Float32, count: 2000}, 1)
		}, "recv"},
		{"bulk copies, sum", true, func(r *rig) worker {
			return r.prepare(trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum,
				count: 4000}, 1)
		}, "recv"},
		{"bulk copies, sending", true, inOrder, "send"},
		{"direct", false, func(r *rig) worker {
			return r.prepareDirect(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 300}, 1)
		}, "recv"},
		{"window", false, func(r *rig) worker { return r.prepareWindow(gather, false, 1) }, "recv"},
		{"copies", false, func(r *rig) worker { return r.prepareWindow(gather, true, 1) }, "recv"},
		{"batch", false, func(r *rig) worker { return r.prepareBatch(kernels.Float32, kernels.Sum, 6, 1) }, "recv"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := options(n)
			if test.bulk {
				o = bulkOptions(n)
			}
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1, Link: link(0)}), mailed(n), o)
			if test.bulk {
				r.bulky(func(int) bool { return true })
			}
			narrow(r)
			w := test.make(r)
			r.reset(w)
			require.NoError(t, r.ranks[0].engine.PrepareWindow(nil))
			for range 3 {
				r.runOn(r.ranks[:n-1], w)
			}
			step := r.endStuck(r.ranks[0], 3)
			require.Equal(t, sched.Rank(n-1), step.Peer)
			require.Equal(t, test.phase, step.Phase)
			if test.name == "window" { // nobody has touched the memory of the rank that never came
				i := w.base().images[n-1]
				i.want = i.fresh
				require.NoError(t, r.differs(&work{images: []image{i}}))
			}
			r.free()
		})
	}
}

// quiet is a driver whose launches and copies do nothing.
type quiet struct{ cuda.Driver }

func (quiet) LaunchKernel(cuda.Function, *cuda.Launch, []byte) error { return nil }
func (quiet) MemcpyAsync(uintptr, uintptr, int, cuda.Stream) error   { return nil }

// TestAllocates: queuing an operation takes nothing from the heap, and bulk copies have the threads of their kind.
func TestAllocates(t *testing.T) {
	const n, threads = 2, 128
	for _, bulk := range []bool{false, true} {
		o := options(n)
		if bulk {
			o = bulkOptions(n)
		}
		r := newRig(t, emulated(t, n, cudaemu.Config{}), mailed(n), o)
		m := r.ranks[0]
		list := map[worker]int{} // threads of the kernel, 0: whatever they are
		add := func(x trial, threads int) {
			list[r.prepare(x, 1)] = only(bulk, threads)
		}
		gather := trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: kernels.Int8, count: 4096}
		sum := trial{name: "sum", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 4096}
		odd, oddIn, oddOut, varied, mean := gather, sum, sum, gather, sum
		odd.count, oddIn.in, oddOut.out, varied.varied, varied.count = 4095, 1, 1, true, 70
		mean.t, mean.op = kernels.Int32, &kernels.Avg
		add(gather, bulkThreads)
		add(odd, threads)
		add(sum, bulkSumThreads)
		add(oddIn, bulkSumThreads)
		add(oddOut, threads)
		add(mean, bulkSumThreads)
		add(varied, 0)
		add(trial{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 4096}, bulkThreads)
		list[r.prepareGroup([]sending{{0, 1, 100}, {1, 0, 3000}}, false, 1)] = 0
		list[r.prepareBatch(kernels.Float32, kernels.Sum, 50, 1)] = 0
		for _, x := range directTrials(n)[:4] {
			list[r.prepareDirect(x, 1)] = 0
		}
		for _, x := range windowTrials(n) {
			list[r.prepareWindow(x, false, 1)] = 0
			if r.copies(x) {
				list[r.prepareWindow(x, true, 1)] = 0
			}
		}
		m.engine.driver = quiet{r.d}
		for w, threads := range list {
			r.with(m, func() (err error) {
				run := w.base().queue
				require.NoError(t, run(m), w.base().name)
				if threads > 0 {
					require.EqualValues(t, threads, m.engine.call.Block.X, w.base().name)
				}
				require.Zero(t, testing.AllocsPerRun(20, func() { err = run(m) }), w.base().name)
				return err
			})
		}
		m.engine.driver = r.d
	}
}
