package grid

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

// bulkOptions have several tiles in a slice, and a last one that is shorter.
func bulkOptions(ranks int) Options {
	o := options(ranks)
	o.Bulk, o.TileBytes = true, 96
	return o
}

// bulky has some ranks of a rig move by bulk copies, also where memory is not aligned, and the others by threads.
func (r *rig) bulky(bulk func(rank int) bool) {
	r.t.Helper()
	for i, m := range r.ranks {
		if m.engine.bulk.uneven = true; !bulk(i) {
			m.engine.bulk.tile = 0
		}
		require.NoError(r.t, m.engine.Prepare(nil))
		require.Equal(r.t, bulk(i), m.engine.Bulk(), "rank %d", i)
	}
}

// TestBulkSchedules has every schedule carried out by bulk copies, on all ranks or on every
// other one, and compares with the host's engine, bit for bit: sums of bfloat16, which round.
func TestBulkSchedules(t *testing.T) {
	tier.Long(t)
	type ranks struct {
		n   int
		all bool
	}
	for _, test := range tier.Some(5, []ranks{{3, false}, {4, true}, {2, true}, {4, false}, {1, true}}) {
		n := test.n
		some := collectives()
		if n == 4 {
			some = append(some, hierarchies()...)
		}
		// The order of accesses is checked for two ranks, and in TestBulkOrders for more.
		cfg := cudaemu.Config{Seed: uint64(n), Link: link(uint64(n)), Plain: unchecked(n != 2)}
		r := newRig(t, emulated(t, n, cfg), small(n),
			bulkOptions(n))
		r.bulky(func(rank int) bool { return test.all || rank%2 == 0 })
		for i, c := range some {
			if c.reduces && test == (ranks{4, false}) {
				continue
			}
			r.sub(fmt.Sprintf("%s/%d/all %v", c.name, n, test.all), func() {
				x := trial{name: c.name, schedule: c.make(n), shares: c.shares, t: kernels.BFloat16, count: 999}
				if c.reduces {
					x.op = &kernels.Sum
				}
				y := x
				y.inPlace = c.inPlace
				z := y
				z.count, z.in, z.out = 37, 1, 3
				for k, x := range []trial{z, x, y} {
					if n < 4 && tier.Pairs() || (i+k)%3 == 0 { // four ranks take long
						r.try(x, uint64(i))
					}
				}
				if c.shares && (!c.reduces || c.name == "ring reducescatter") && (tier.Pairs() || i%2 == 0) {
					x.count, x.varied = 555, true
					r.try(x, uint64(i))
				}
			})
		}
	}
}

// TestBulkOps runs every type and reduction through schedules in which contributions are
// sent as they are or scaled, combined with what came, and combined in place: in tiles and
// by elements.
func TestBulkOps(t *testing.T) {
	tier.Long(t)
	const n = 3
	r := newRig(t, emulated(t, n, cudaemu.Config{Plain: true}), small(n), bulkOptions(n))
	r.bulky(func(int) bool { return true })
	for i, red := range reductions() {
		r.sub(red.String(), func() {
			x := trial{name: "ring", schedule: ring.AllReduce{N: n}, t: red.t, op: &red.op, count: 500/red.t.Size() + 5,
				in: i % 2}
			r.try(x, uint64(i))
			if tier.Pairs() {
				x.in = 1 - x.in
				r.try(x, uint64(i))
			}
			x = trial{name: "oneshot", schedule: direct.OneShot{N: n}, t: red.t, op: &red.op, count: 300 / red.t.Size(),
				inPlace: true}
			r.try(x, uint64(i))
		})
	}
}

// TestBulkMessages sends messages in groups, by bulk copies on all ranks or on some.
func TestBulkMessages(t *testing.T) {
	tier.Long(t)
	const n = 3
	var everybody, many []parcel
	for from := range n {
		for to := range n {
			everybody = append(everybody, parcel{from, to, 700*from + 333*to + 1}, parcel{from, to, 5}, parcel{from, to, 0},
				parcel{from, to, 4096})
		}
	}
	for i := range 36 {
		many = append(many, parcel{i % n, (i / n) % n, 16 * i * i})
	}
	type test struct {
		parcels []parcel
		blocks  int
		alone   int // a rank that queues its messages one by one, or -1
	}
	for seed, test := range tier.Some(3, []test{
		{everybody, 0, -1},
		{everybody, 2, -1},
		{many, 1, -1},
		{[]parcel{{0, 1, 3000}, {0, 2, 5000}, {2, 1, 20}, {2, 1, 2000}}, 0, 0},
	}) {
		for _, all := range tier.Some(2, []bool{false, true}) {
			t.Run(fmt.Sprint(seed, all), func(t *testing.T) {
				o := bulkOptions(n)
				o.Blocks = test.blocks
				r := newRig(t, emulated(t, n, cudaemu.Config{Seed: uint64(seed), Link: link(uint64(seed))}), small(n), o)
				r.bulky(func(rank int) bool { return all || rank != 1 })
				p := r.post(test.parcels, uint64(seed))
				r.sendTwice(p, test.alone)
			})
		}
	}
}

// moves are operations that only move, and one that reduces between them.
func moves(n int) []trial {
	return []trial{
		{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: kernels.Float32, count: 300},
		{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 200},
		{name: "log", schedule: direct.LogAllGather{N: n}, shares: true, t: kernels.Int8, count: 777, inPlace: true},
		{name: "tree", schedule: tree.Broadcast{N: n}, t: kernels.Int8, count: 3001},
		{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 733, in: 1},
	}
}

// TestBulkOrders runs operations of two communicators, each one after the other without
// waiting in between, eager and then in graphs.
func TestBulkOrders(t *testing.T) {
	tier.Long(t)
	for seed := range seeds() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n := 2 + int(seed%2)
			d := emulated(t, n, cudaemu.Config{Seed: seed, Link: link(seed + seed/2)})
			rigs := []*rig{newRig(t, d, small(n), bulkOptions(n)), newRig(t, d, small(n), bulkOptions(n))}
			all := make([][]*operation, len(rigs))
			for i, r := range rigs {
				r.bulky(func(rank int) bool { return seed%4 != 3 || rank > 0 })
				for k, x := range moves(n) {
					all[i] = append(all[i], r.prepare(x, seed+uint64(k)))
				}
			}
			for i, r := range rigs { // kernels are loaded before any runs
				for _, m := range r.ranks {
					red := all[i][1].jobs[m.rank].Reducer
					r.with(m, func() error { return m.engine.Prepare(red) })
				}
			}
			reset := func() {
				for i, r := range rigs {
					for _, o := range all[i] {
						r.reset(o)
					}
				}
			}
			check := func() {
				for i, r := range rigs {
					for _, o := range all[i] {
						r.check(o)
					}
				}
			}
			reset()
			for k := range all[0] {
				for i, r := range rigs {
					r.run(all[i][k])
				}
			}
			check()
			var graphs [][]cuda.GraphExec
			for i, r := range rigs {
				graphs = append(graphs, nil)
				for _, m := range r.ranks {
					graphs[i] = append(graphs[i], r.capture(m, func(m *member) error {
						var errs []error
						for _, o := range all[i] {
							errs = append(errs, carry(m.engine, &o.jobs[m.rank]))
						}
						return errors.Join(errs...)
					}))
				}
			}
			reset()
			for i, r := range rigs {
				for k, m := range r.ranks {
					r.with(m, func() error { return d.GraphLaunch(graphs[i][k], m.stream) })
				}
			}
			check()
			for i, r := range rigs {
				for k, m := range r.ranks {
					r.with(m, func() error { return d.GraphExecDestroy(graphs[i][k]) })
				}
			}
		})
	}
}

// TestBulkSlots has slots of one tile, of many, and fewer of them than turns.
func TestBulkSlots(t *testing.T) {
	tier.Long(t)
	const n = 3
	for seed, g := range []Geometry{
		{Lanes: 1, Slots: 2, SlotBytes: 128},
		{Lanes: 2, Slots: 2, SlotBytes: 4096, NoteBytes: 128},
		{Lanes: 1, Slots: 32, SlotBytes: 128},
		{Lanes: 3, Slots: 16, SlotBytes: 1024},
	} {
		o := bulkOptions(n)
		o.TileBytes = []int{64, 128, 4096}[seed%3]
		r := newRig(t, emulated(t, n, cudaemu.Config{Seed: uint64(seed)}), Board{Ranks: n, MailBytes: 128, Near: g, Far: g},
			o)
		r.bulky(func(rank int) bool { return true })
		for i, x := range moves(n) {
			if tier.Pairs() || (seed+i)%2 == 0 {
				r.sub(fmt.Sprint(seed, x.name), func() { r.try(x, uint64(i)) })
			}
		}
	}
}

// TestBulkMissing: a rank that never comes leaves the others waiting, with slices under way,
// until the host ends them.
func TestBulkMissing(t *testing.T) {
	const n = 3
	for _, c := range []struct {
		name  string
		x     trial
		peer  sched.Rank
		phase string
	}{
		{"receiving", trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: kernels.Float32, count: 2000},
			2, "recv"},
		{"sum", trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 4000},
			2, "recv"},
		{"sending", trial{name: "scatter", schedule: direct.Scatter{N: n, Root: 0}, shares: true, t: kernels.Float32,
			count: 2000}, 2, "send"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, emulated(t, n, cudaemu.Config{Stall: -1}), small(n), bulkOptions(n))
			r.bulky(func(rank int) bool { return true })
			o := r.prepare(c.x, 1)
			if c.phase == "send" {
				r.programs["scatter"][0].independent = false
			}
			r.reset(o)
			for range 3 {
				for i, m := range r.ranks[:n-1] {
					r.with(m, func() error { return carry(m.engine, &o.jobs[i]) })
				}
			}
			step := r.endStuck(r.ranks[0], 3)
			require.Equal(t, c.peer, step.Peer)
			require.Equal(t, c.phase, step.Phase)
		})
	}
}

// TestBulkMismatch: ranks with calls of different lengths find out, whether they move by
// bulk copies or not.
func TestBulkMismatch(t *testing.T) {
	const n = 2
	for _, bulk := range []int{0, 1, 2} {
		r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), bulkOptions(n))
		r.bulky(func(rank int) bool { return bulk == 2 || rank == bulk })
		r.wipe()
		o := r.prepare(trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: kernels.Float32, count: 400}, 5)
		o.jobs[1].InL.Total, o.jobs[1].InL.Chunk, o.jobs[1].OutL.Total, o.jobs[1].OutL.Chunk = 20, 20, 40, 20
		r.reset(o)
		r.run(o)
		c := r.ranks[0].engine.Control()
		require.Eventually(t, func() bool { return c.Fault() != nil }, 10*time.Second, time.Millisecond)
		step, wrong := mismatch(t, c)
		require.Equal(t, sched.Rank(1), step.Peer)
		require.Equal(t, 20, int(wrong.GotBytes))
		r.abort()
		r.sync()
	}
}

// TestBulkAllocates: queuing takes nothing from the heap, and the kernel has the threads of its kind.
func TestBulkAllocates(t *testing.T) {
	const n = 2
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), bulkOptions(n))
	gather := r.prepare(trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: kernels.Int8, count: 4096},
		1)
	odd := r.prepare(trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: kernels.Int8, count: 4095}, 1)
	all := r.prepare(trial{name: "alltoall", schedule: direct.AlltoAll{N: n}, shares: true, t: kernels.Int8, count: 4096},
		1)
	sum := r.prepare(trial{name: "sum", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 4096},
		1)
	oddIn := r.prepare(trial{name: "sum", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum,
		count: 4096, in: 1}, 1)
	oddSum := r.prepare(trial{name: "sum", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum,
		count: 4096, out: 1}, 1)
	m := r.ranks[0]
	m.engine.driver = quiet{r.d}
	r.with(m, func() error {
		for _, test := range []struct {
			o       *operation
			threads int
		}{{gather, bulkThreads}, {odd, 128}, {all, bulkThreads}, {sum, bulkSumThreads}, {oddIn, bulkSumThreads},
			{oddSum, 128}} {
			j := &test.o.jobs[0]
			require.NoError(t, carry(m.engine, j))
			require.EqualValues(t, test.threads, m.engine.call.Block.X, test.o)
			var err error
			require.Zero(t, testing.AllocsPerRun(20, func() { err = carry(m.engine, j) }), test.o)
			require.NoError(t, err)
		}
		return nil
	})
}

// TestBulkCannot: older devices and drivers do without, and say so.
func TestBulkCannot(t *testing.T) {
	const n = 2
	if gputest.OnGPU() {
		t.Skip("a GPU is what it is")
	}
	for name, c := range map[string]cudaemu.Config{
		"device": {Shapes: []cudaemu.Device{{Major: 8, Minor: 6}, {Major: 8, Minor: 6}}},
		"driver": {DriverVersion: 11080},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, emulated(t, n, c), small(n), bulkOptions(n))
			for _, m := range r.ranks {
				require.NoError(t, m.engine.Prepare(nil))
				require.False(t, m.engine.Bulk())
			}
			r.try(trial{name: "gather", schedule: ring.AllGather{N: n}, shares: true, t: kernels.Int8, count: 4096}, 1)
		})
	}
	r := newRig(t, emulated(t, n, cudaemu.Config{}), small(n), options(n))
	_, err := New(r.d, r.ranks[0].ctx, 0, r.ranks[0].engine.links, Options{Ranks: n, TileBytes: 24})
	require.ErrorContains(t, err, "tiles of 24 bytes")
}

// TestBulkLoadFails: an error that says nothing about the GPU is reported, and the next load may succeed.
func TestBulkLoadFails(t *testing.T) {
	r := newRig(t, emulated(t, 1, cudaemu.Config{}), small(1), bulkOptions(1))
	e := r.ranks[0].engine
	failing := cuda.ErrOutOfMemory
	e.text = func(name ptx.Name) ([]byte, error) {
		if name.Source == ptx.Bulk.Source && failing != 0 {
			return nil, failing
		}
		return ptx.Text(name)
	}
	require.ErrorIs(t, e.Prepare(nil), cuda.ErrOutOfMemory)
	failing = 0
	require.NoError(t, e.Prepare(nil))
	require.True(t, e.Bulk())
}

// TestBulkBroken takes out, one at a time, what orders bulk copies and the memory that they
// share with threads, and has the emulator find it.
func TestBulkBroken(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a GPU would not say what is wrong, but stop working")
	}
	const n = 3
	type test struct {
		name         string
		pattern, new string
		sum          bool // for reductions, else for copies
	}
	for _, test := range tier.Some(6, []test{
		{"no fences of proxies", `fence\.proxy\.async\.global;`, "", false},
		{"stores are not waited for", `cp\.async\.bulk\.wait_group \d;`, "", false},
		{"stores are waited for until they have read", `cp\.async\.bulk\.wait_group (\d);`,
			"cp.async.bulk.wait_group.read $1;", false},
		{"the last stores are not waited for", `cp\.async\.bulk\.wait_group 0;`, "cp.async.bulk.wait_group 4;", false},
		{"tiles are loaded again too early", `cp\.async\.bulk\.wait_group\.read \d;`, "", false},
		{"slots are posted without a fence", `fence\.acq_rel\.sys;`, "", false},
		{"slots are taken without an acquire", `ld\.acquire\.sys`, "ld.relaxed.sys", false},
		{"gates are not waited for", `(mbarrier\.try_wait\.parity\.shared::cta\.b64 (p), \[%r\d+\], %r\d+;)`,
			"$1 setp.eq.u32 p, 0, 0;", false},
		{"sums are stored without a fence of proxies", `fence\.proxy\.async\.shared::cta;`, "", true},
		{"warps of adders do not wait for their threads", `(fence\.proxy\.async\.shared::cta;[^b]*)bar\.warp\.sync -1;`, "$1",
			true},
		{"sums are loaded again too early", `cp\.async\.bulk\.wait_group\.read \d;`, "", true},
		{"gates of sums are not waited for", `(mbarrier\.try_wait\.parity\.shared::cta\.b64 (p), \[%r\d+\], %r\d+;)`,
			"$1 setp.eq.u32 p, 0, 0;", true},
	}) {
		t.Run(test.name, func(t *testing.T) {
			found := 0
			for seed := range uint64(tier.Count(1, 3)) {
				d := gputest.Driver(t, gputest.Faults(),
					gputest.Emu(cudaemu.Config{Devices: n, Seed: seed, StallInstructions: 20000, Stall: 100 * time.Millisecond,
						Report: func(*weakmem.Fault) bool { return false }}))
				r := newRig(t, d, small(n), bulkOptions(n))
				for _, m := range r.ranks {
					m.engine.text = func(name ptx.Name) ([]byte, error) {
						text, err := ptx.Text(name)
						if name.Source == ptx.Bulk.Source && (name.Op != "") == test.sum {
							broken := regexp.MustCompile(test.pattern).ReplaceAll(text, []byte(test.new))
							require.NotEqual(t, string(text), string(broken))
							text = broken
						}
						return text, err
					}
				}
				r.bulky(func(rank int) bool { return rank != 2 })
				x := trial{name: "log", schedule: direct.LogAllGather{N: n}, shares: true, t: kernels.Float32, count: 800}
				if test.sum {
					x = trial{name: "ring", schedule: ring.AllReduce{N: n}, t: kernels.Float32, op: &kernels.Sum, count: 1200}
				}
				o := r.prepare(x, 1)
				r.reset(o)
				r.run(o)
				for _, m := range r.ranks {
					_ = cuda.With(d, m.ctx, func() error { return d.StreamSynchronize(m.stream) })
				}
				kinds := map[weakmem.FaultKind]int{}
				for _, f := range d.(*cudaemu.Machine).Reports() {
					kinds[f.Kind]++
				}
				if kinds[weakmem.Race]+kinds[weakmem.Uninitialized]+kinds[weakmem.BadInstruction]+kinds[weakmem.NoProxyFence] > 0 {
					found++
				}
				t.Log(kinds)
			}
			require.NotZero(t, found)
		})
	}
}
