package grid

import (
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
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
)

// A breakage is something that is taken out of kernels or of their arguments.
type breakage struct {
	what         string
	pattern, new string
	change       func(a *windowArgs)
}

// A breakable is a kind of kernel whose breakages are found.
type breakable struct {
	kind     string
	ranks    int
	board    func(ranks int) Board
	options  func(ranks int) Options
	config   cudaemu.Config
	long     bool // in the full tier alone
	seeds    int
	times    int                      // that the work is queued
	reported bool                     // only what the emulator reports counts, no wrong results
	text     func(name ptx.Name) bool // which texts are broken
	make     func(r *rig, seed uint64) worker
	all      []breakage
}

var breakables = []breakable{
	{kind: "interpreter", ranks: 2, board: small, options: options, config: cudaemu.Config{StallInstructions: 1000},
		seeds: 1, times: 1, reported: true,
		make: func(r *rig, _ uint64) worker { return r.prepare(allReduce(2), 1) },
		all: []breakage{
			{what: "slots are posted without a fence", pattern: `fence\.acq_rel\.sys;`},
			{what: "slots are taken without an acquire", pattern: `ld\.acquire\.sys`, new: "ld.relaxed.sys"},
			{what: "a fence is for its device alone", pattern: `fence\.acq_rel\.sys;`, new: "fence.acq_rel.gpu;"},
			{what: "threads do not wait for each other at the start", pattern: `bar\.red\.or\.pred q, 0, p;`,
				new: "vote.sync.any.pred q, p, -1;"},
			{what: "threads arrive twice", pattern: `bar\.arrive (%r\d+), (%r\d+);`,
				new: "bar.arrive $1, $2; bar.arrive $1, $2;"},
		}},
	{kind: "direct", ranks: 2, board: mailed, options: options, seeds: 20, times: 3, make: twoShot,
		config: cudaemu.Config{StallInstructions: 1000, Link: link(0)},
		all: []breakage{
			{what: "the flag is stored by itself", pattern: storeLine,
				new: "st.volatile.global.u64 [$1], $2; st.volatile.global.u64 [$1+8], $3;"},
			{what: "lines are loaded word by word", pattern: `ld\.volatile\.global\.v2\.u64 \{(%rd\d+), (%rd\d+)\}, \[(%rd\d+)\];`,
				new: "ld.volatile.global.u64 $1, [$3]; ld.volatile.global.u64 $2, [$3+8];"},
			{what: "lines are stored weakly", pattern: `st\.volatile\.global\.v2`, new: "st.global.v2"},
			{what: "lines are loaded weakly", pattern: `ld\.volatile\.global\.v2`, new: "ld.global.v2"},
			{what: "epochs are written before others have read them", pattern: `bar\.sync 0;`},
		}},
	{kind: "direct, lines that tear", ranks: 2, board: mailed, options: options, seeds: 20, times: 3, make: twoShot,
		config: cudaemu.Config{StallInstructions: 1000, Link: link(1)},
		all: []breakage{
			{what: "stored weakly", pattern: `st\.volatile\.global\.v2`, new: "st.global.v2"},
			{what: "a flag alone", pattern: ` -2960836687051489901;`, new: " 0;"},
			{what: "digests of one half", pattern: `shfl\.sync\.bfly\.b32 (%r\d+), %r\d+, 4, 31, -1;`, new: "mov.u32 $1, 0;"},
		}},
	{kind: "notes", ranks: 2, board: longNotes, options: options, config: cudaemu.Config{StallInstructions: 1000},
		long: true, seeds: 40, times: 1,
		make: func(r *rig, seed uint64) worker {
			var notes []sending
			for range 8 {
				notes = append(notes, sending{0, 1, 1900})
			}
			return r.prepareGroup(notes, false, seed)
		},
		all: []breakage{
			{what: "the flag is stored by itself", pattern: storeLine,
				new: "st.volatile.global.u64 [$1], $2; st.volatile.global.u64 [$1+8], $3;"},
			{what: "threads of a line look one after the other", pattern: `bar\.warp\.sync[ \t]+-1;`},
			{what: "lines are stored weakly", pattern: `st\.volatile\.global\.v2`, new: "st.global.v2"},
			{what: "slots are released before all have read them", pattern: `bar\.red\.or\.pred q, 0, p;`,
				new: "vote.sync.any.pred q, p, -1;"},
		}},
	{kind: "norm in parts", ranks: 2, board: boardForRows, options: rowOptions, seeds: 20, times: 3,
		config: cudaemu.Config{StallInstructions: 2000, Link: link(0)},
		make:   func(r *rig, seed uint64) worker { return r.prepareNorm(normShapes()["parts"], seed) },
		all: []breakage{
			{what: "words are told weakly", pattern: `st\.relaxed\.sys\.global\.u64`, new: "st.global.u64"},
			{what: "words are heard weakly", pattern: `ld\.relaxed\.sys\.global\.u64`, new: "ld.global.u64"},
		}},
	{kind: "norm", ranks: 2, board: boardForRows, options: rowOptions, seeds: 20, times: 3,
		config: cudaemu.Config{StallInstructions: 2000, Link: link(0)},
		make:   func(r *rig, seed uint64) worker { return r.prepareNorm(normShapes()["pair"], seed) },
		all: []breakage{{what: "no barrier before squares are added", pattern: `bar\.red\.or\.pred q, 0, p;`,
			new: "mov.pred q, p;"}}},
	{kind: "window", ranks: 3, board: mailed, options: options, config: cudaemu.Config{StallInstructions: 50_000},
		long: true, seeds: 20, times: 3,
		make: func(r *rig, seed uint64) worker {
			return r.refilled(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 900}, seed)
		},
		all: []breakage{
			{what: "nothing", change: func(*windowArgs) {}},
			{what: "flags are stored without a fence", pattern: `fence\.acq_rel\.sys;`},
			{what: "flags are loaded weakly", pattern: `ld\.acquire\.sys\.global\.u64`, new: "ld.relaxed.sys.global.u64"},
			{what: "threads do not wait for their block", pattern: `bar\.red\.or\.pred q, 0, p;`,
				new: "vote.sync.any.pred q, p, -1;"},
			{what: "no opening gate", change: func(a *windowArgs) { a.pass, a.before = 1, 0 }},
			{what: "no closing gate", change: func(a *windowArgs) { a.pass = 1 }},
			{what: "a wrong share", change: func(a *windowArgs) { a.bytes[0] -= 16 }},
		}},
	{kind: "broadcast in a window", ranks: 3, board: mailed, options: options,
		config: cudaemu.Config{StallInstructions: 50_000}, long: true, seeds: 20, times: 3,
		make: func(r *rig, seed uint64) worker {
			return r.refilled(directTrial{d: Broadcast, t: kernels.Float32, count: 900}, seed)
		},
		all: []breakage{{what: "the root opens too early", change: func(a *windowArgs) { a.before = 1 }}}},
	{kind: "bulk copies", ranks: 3, board: small, options: bulkOptions, config: bulkBroken, seeds: tier.Count(1, 3), times: 1,
		reported: true, text: func(name ptx.Name) bool { return name == ptx.Bulk },
		make: func(r *rig, _ uint64) worker {
			r.bulky(func(rank int) bool { return rank != 2 })
			return r.prepare(trial{name: "log", schedule: direct.LogAllGather{N: 3}, shares: true, t: kernels.Float32,
				count: 800}, 1)
		},
		all: tier.Some(6, []breakage{
			{what: "no fences of proxies", pattern: `fence\.proxy\.async\.global;`},
			{what: "stores are not waited for", pattern: `cp\.async\.bulk\.wait_group \d;`},
			{what: "stores are waited for until they have read", pattern: `cp\.async\.bulk\.wait_group (\d);`,
				new: "cp.async.bulk.wait_group.read $1;"},
			{what: "the last stores are not waited for", pattern: `cp\.async\.bulk\.wait_group 0;`,
				new: "cp.async.bulk.wait_group 4;"},
			{what: "tiles are loaded again too early", pattern: `cp\.async\.bulk\.wait_group\.read \d;`},
			{what: "slots are posted without a fence", pattern: `fence\.acq_rel\.sys;`},
			{what: "slots are taken without an acquire", pattern: `ld\.acquire\.sys`, new: "ld.relaxed.sys"},
			{what: "gates are not waited for", pattern: tryWait, new: "$1 setp.eq.u32 p, 0, 0;"},
		})},
	{kind: "bulk sums", ranks: 3, board: small, options: bulkOptions, config: bulkBroken, seeds: tier.Count(1, 3), times: 1,
		reported: true, text: func(name ptx.Name) bool { return name.Source == ptx.Bulk.Source && name.Op != "" },
		make: func(r *rig, _ uint64) worker {
			r.bulky(func(rank int) bool { return rank != 2 })
			return r.prepare(trial{name: "ring", schedule: ring.AllReduce{N: 3}, t: kernels.Float32, op: &kernels.Sum,
				count: 1200}, 1)
		},
		all: tier.Some(4, []breakage{
			{what: "stored without a fence of proxies", pattern: `fence\.proxy\.async\.shared::cta;`},
			{what: "warps of adders do not wait for their threads",
				pattern: `(fence\.proxy\.async\.shared::cta;[^b]*)bar\.warp\.sync -1;`, new: "$1"},
			{what: "loaded again too early", pattern: `cp\.async\.bulk\.wait_group\.read \d;`},
			{what: "gates are not waited for", pattern: tryWait, new: "$1 setp.eq.u32 p, 0, 0;"},
		})},
}

const (
	storeLine = `st\.volatile\.global\.v2\.u64 \[(%rd\d+)\], \{(%rd\d+), (%rd\d+)\};`
	tryWait   = `(mbarrier\.try_wait\.parity\.shared::cta\.b64 (p), \[%r\d+\], %r\d+;)`
)

var bulkBroken = cudaemu.Config{StallInstructions: 20000, Stall: 100 * time.Millisecond,
	Report: func(*weakmem.Fault) bool { return false }}

func twoShot(r *rig, seed uint64) worker {
	return r.prepareDirect(directTrial{d: TwoShot, t: kernels.Float32, op: &kernels.Sum, count: 900}, seed)
}

// longNotes is a board of few notes, of many lines each.
func longNotes(ranks int) Board {
	b := small(ranks)
	b.Near = Geometry{Lanes: 1, Slots: 2, SlotBytes: 256, NoteBytes: 2 << 10}
	b.Far = b.Near
	return b
}

// TestBroken takes out, one at a time, what kernels rest on, and has the results be wrong or the emulator complain.
func TestBroken(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a GPU would not say what is wrong, but stop working")
	}
	for _, k := range breakables {
		t.Run(k.kind, func(t *testing.T) {
			if k.long {
				tier.Long(t)
			}
			for _, b := range k.all {
				t.Run(b.what, func(t *testing.T) {
					found := false
					for seed := 0; seed < k.seeds && !found; seed++ {
						found = k.finds(t, &b, uint64(seed))
					}
					require.Equal(t, b.what != "nothing", found)
				})
			}
		})
	}
}

// finds reports whether a breakage is found with a seed.
func (k *breakable) finds(t *testing.T, b *breakage, seed uint64) (found bool) {
	c := k.config
	c.Devices, c.Seed = k.ranks, seed
	d := gputest.Driver(t, gputest.Faults(), gputest.Emu(c))
	r := newRig(t, d, k.board(k.ranks), k.options(k.ranks))
	defer r.close()
	changed := b.change != nil
	for _, m := range r.ranks {
		if b.change != nil {
			m.engine.driver = &spoiled{r.d, &m.engine.windows.args, b.change}
			continue
		}
		m.engine.text = func(name ptx.Name) ([]byte, error) {
			text, err := ptx.Text(name)
			if k.text != nil && !k.text(name) {
				return text, err
			}
			broken := regexp.MustCompile(b.pattern).ReplaceAll(text, []byte(b.new))
			changed = changed || string(text) != string(broken)
			return broken, err
		}
	}
	w := k.make(r, seed)
	r.reset(w)
	for range k.times {
		for _, m := range r.ranks {
			found = cuda.With(d, m.ctx, func() error { return w.base().queue(m) }) != nil || found
		}
	}
	for _, m := range r.ranks {
		found = cuda.With(d, m.ctx, func() error { return d.StreamSynchronize(m.stream) }) != nil || found
	}
	require.True(t, changed)
	found = !k.reported && (r.differs(w) != nil || found)
	for _, f := range d.(*cudaemu.Machine).Reports() {
		switch f.Kind {
		case weakmem.Race, weakmem.Uninitialized, weakmem.BadInstruction, weakmem.NoProxyFence:
			found = true
		}
	}
	return found
}

// spoiled changes the arguments of kernels in windows.
type spoiled struct {
	cuda.Driver
	args   *windowArgs
	change func(a *windowArgs)
}

func (s *spoiled) LaunchKernel(f cuda.Function, l *cuda.Launch, args []byte) error {
	s.change(s.args)
	return s.Driver.LaunchKernel(f, l, args)
}

// refilled is an operation in windows before which In is written and Out cleared on the stream, so it matters when
// others read and write there.
func (r *rig) refilled(x directTrial, seed uint64) worker {
	narrow(r)
	o := r.prepareWindow(x, false, seed)
	var fresh []mem.Region
	for i, m := range r.ranks {
		in := o.jobs[i].In
		fresh = append(fresh, r.upload(m, o.images[i].fresh[in.Ptr()-o.images[i].at:][:in.Len()], 0))
	}
	o.queue = func(m *member) error {
		in, out := o.jobs[m.rank].In, o.jobs[m.rank].Out
		if in.Len() > 0 {
			if err := r.d.MemcpyAsync(in.Ptr(), fresh[m.rank].Ptr(), in.Len(), m.stream); err != nil {
				return err
			}
		}
		if out.Len() > 0 {
			if err := r.d.MemsetD8Async(out.Ptr(), 0, out.Len(), m.stream); err != nil {
				return err
			}
		}
		return o.run(m)
	}
	return o
}
