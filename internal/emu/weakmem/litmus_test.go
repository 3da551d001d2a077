package weakmem

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Addresses of the litmus tests' variables.
const (
	x     = 0x10000
	y     = 0x10040
	ready = 0x10080
)

// A thread of a litmus test does its steps in order; a step that returns false
// ends it.
type thread struct {
	device, block, warp, lane int
	cluster                   int // of a device, 0 for none
	steps                     []step

	on    *Block
	r     [4]uint64 // registers
	again bool      // the step is to be repeated
	line  int
	far   uint64 // added to addresses

	shared bool
}

type step func(t *thread) bool

// apart is the least scope that holds both threads.
func (t *thread) apart(o *thread) Scope {
	switch {
	case t.device != o.device:
		return System
	case t.block == o.block:
		return CTA
	case t.cluster != 0 && t.cluster == o.cluster:
		return Cluster
	}
	return GPU
}

func (t *thread) how(o Order, s Scope) How {
	return How{Order: o, Scope: s, Line: t.line, Shared: t.shared}
}

func st(addr, v uint64, o Order, s Scope) step {
	return func(t *thread) bool {
		return t.on.Store(t.warp, 1<<t.lane, one(t.lane, addr+t.far), 4, []*alu.Lanes{one(t.lane, v)}, t.how(o, s)) == nil
	}
}

func ld(r int, addr uint64, o Order, s Scope) step {
	return func(t *thread) bool {
		var d alu.Lanes
		f := t.on.Load(t.warp, 1<<t.lane, one(t.lane, addr+t.far), 4, []*alu.Lanes{&d}, t.how(o, s))
		t.r[r] = d[t.lane]
		return f == nil
	}
}

func atomAdd(r int, addr, v uint64, o Order, s Scope) step {
	return func(t *thread) bool {
		var old alu.Lanes
		f := t.on.Atomic(t.warp, 1<<t.lane, one(t.lane, addr+t.far), 4, &old, func(_ int, u uint64) uint64 { return u + v },
			t.how(o, s))
		t.r[r] = old[t.lane]
		return f == nil
	}
}

// red adds, and returns nothing: what it does may be seen late.
func red(addr, v uint64, o Order, s Scope) step {
	return func(t *thread) bool {
		how := t.how(o, s)
		how.Late = t.on.Late(t.warp, how)
		add := func(_ int, u uint64) uint64 { return u + v }
		return t.on.Atomic(t.warp, 1<<t.lane, one(t.lane, addr+t.far), 4, nil, add, how) == nil
	}
}

func fence(s Scope) step {
	return func(t *thread) bool { t.on.Fence(t.warp, 1<<t.lane, t.how(AcqRel, s)); return true }
}

func fenceSC(s Scope) step {
	return func(t *thread) bool { t.on.Fence(t.warp, 1<<t.lane, t.how(SeqCst, s)); return true }
}

// until repeats a load until it gives v.
func until(r int, addr, v uint64, o Order, s Scope) step {
	return func(t *thread) bool {
		goOn := ld(r, addr, o, s)(t)
		t.again = goOn && t.r[r] != v
		return goOn
	}
}

// barrier is of all threads of the block; the other threads must not be running.
func barrier(t *thread) bool {
	threads := make([]uint32, len(t.on.warps))
	for i := range threads {
		threads[i] = t.on.warps[i].live
	}
	t.on.Barrier(threads)
	return true
}

func one(lane int, v uint64) *alu.Lanes {
	var l alu.Lanes
	l[lane] = v
	return &l
}

// A litmus test is run under many seeds, its threads interleaved at random.
type litmus struct {
	name    string
	threads func() []*thread
	weak    func(t []*thread) bool // the outcome that order forbids
	shows   bool                   // weak must be seen under some seed, else never
	races   bool                   // likewise for a race
	old     bool                   // weak must be seen with Config.OldLoads, else never
	last    [3]uint64              // what x, y and ready were at the end of the last run
	shared  bool                   // the variables are in the block's shared memory
	aliases bool                   // the variables are at other addresses too, see mapTwice
}

// memory64 is zeroed memory for the litmus tests.
func litmusMemory(seed uint64, old bool, races *int) *Memory {
	m := New(Config{Seed: seed, OldLoads: old, Report: func(*Fault) bool {
		*races++
		return true
	}})
	_ = m.Map(Allocation{Addr: x, Data: make([]byte, 256), Name: "vars"})
	return m
}

func (l *litmus) run(seed uint64, old bool) (weak, race bool) {
	races := 0
	m := litmusMemory(seed, old, &races)
	if l.aliases {
		_ = m.Unmap(x)
		data := make([]byte, 256)
		_ = m.Map(Allocation{Addr: x, Data: data, Physical: 1, Name: "vars"})
		_ = m.Map(Allocation{Addr: x + other, Data: data, Physical: 1, Name: "alias"})
	}
	random := rand.New(rand.NewPCG(seed, 1))
	threads := l.threads()
	grids := map[int]*Grid{}
	blocks, clusters := map[[2]int]*Block{}, map[[2]int][]*Block{}
	for i, t := range threads {
		if grids[t.device] == nil {
			grids[t.device] = m.Begin(t.device, "litmus", Clock{})
		}
		at := [2]int{t.device, t.block}
		if blocks[at] == nil {
			blocks[at] = grids[t.device].Block([3]int{t.block, 0, 0}, [3]int{96, 1, 1}, 256)
			blocks[at].Zero(0)
			if t.cluster != 0 {
				of := [2]int{t.device, t.cluster}
				clusters[of] = append(clusters[of], blocks[at])
			}
		}
		t.on = blocks[at]
		if t.shared = l.shared; l.shared {
			t.far -= x
		}
		t.line = 100 * (i + 1)
	}
	for of, list := range clusters {
		grids[of[0]].Cluster(list...)
	}
	live := append([]*thread(nil), threads...)
	bursts := 1 // how many steps of a thread follow each other, about
	if seed%5 == 3 {
		bursts = 16
	}
	for i := 0; len(live) > 0; {
		if i >= len(live) || random.IntN(bursts) == 0 {
			i = random.IntN(len(live))
		}
		t := live[i]
		t.line++
		goOn := t.steps[0](t)
		if t.again {
			t.line, t.again = t.line-1, false
		} else {
			t.steps = t.steps[1:]
		}
		if !goOn || len(t.steps) == 0 {
			live = append(live[:i], live[i+1:]...)
		}
		for range bursts {
			if random.IntN(2) == 0 {
				m.Tick()
			}
		}
	}
	weak = l.weak(threads)
	for _, b := range blocks {
		b.End()
	}
	for _, g := range grids {
		g.End()
	}
	vars, _ := m.Find(x)
	if l.shared {
		vars = threads[0].on.shared
	}
	l.last = [3]uint64{get(vars.Data, 4), get(vars.Data[y-x:], 4), get(vars.Data[ready-x:], 4)}
	return weak, races > 0
}

// runAll counts what it sees under some seeds, and under more until it has seen what it should.
func (l *litmus) runAll(old, shows bool) (weak, races, tried int) {
	for tried < 1000 && (tried < tier.Count(200, 1000) || shows && weak == 0 || l.races && races == 0) {
		w, r := l.run(uint64(tried), old)
		if w {
			weak++
		}
		if r {
			races++
		}
		tried++
	}
	return weak, races, tried
}

// messagePassing is the classic: data, flag; flag, data. d is the distance of
// the threads: block 1, or device 1 too.
func messagePassing(between, after step, data, flagStore, flagLoad Order, s Scope, far Scope) func() []*thread {
	return func() []*thread {
		w := &thread{steps: []step{st(x, 1, data, s)}}
		if between != nil {
			w.steps = append(w.steps, between)
		}
		w.steps = append(w.steps, st(ready, 1, flagStore, s))
		r := &thread{steps: []step{until(0, ready, 1, flagLoad, s)}}
		if after != nil {
			r.steps = append(r.steps, after)
		}
		r.steps = append(r.steps, ld(1, x, data, s))
		switch far {
		case CTA:
			r.warp = 1
		case Cluster:
			w.cluster, r.block, r.cluster = 1, 1, 1
		case GPU:
			r.block = 1
		case System:
			r.block, r.device = 1, 1
		}
		return []*thread{w, r}
	}
}

// redPassing is messagePassing whose data are added by red, and all of it strong: there is no race to be found.
func redPassing(between step) func() []*thread {
	return func() []*thread {
		w := &thread{steps: []step{red(x, 1, Relaxed, GPU)}}
		if between != nil {
			w.steps = append(w.steps, between)
		}
		w.steps = append(w.steps, st(ready, 1, Relaxed, GPU))
		return []*thread{w, {block: 1, steps: []step{until(0, ready, 1, Acquire, GPU), ld(1, x, Relaxed, GPU)}}}
	}
}

func TestLitmus(t *testing.T) {
	stale := func(t []*thread) bool { return t[1].r[0] == 1 && t[1].r[1] == 0 }
	tests := []litmus{
		{name: "message passing, plain", threads: messagePassing(nil, nil, Weak, Weak, Weak, System, GPU), shows: true,
			races: true},
		{name: "message passing, volatile flag, no fence",
			threads: messagePassing(nil, nil, Weak, Relaxed, Relaxed, System, GPU), shows: true, races: true},
		{name: "message passing, all volatile, no fence",
			threads: messagePassing(nil, nil, Relaxed, Relaxed, Relaxed, System, GPU), shows: true, races: false},
		{name: "message passing, all volatile, fence of the writer only",
			threads: messagePassing(fence(GPU), nil, Relaxed, Relaxed, Relaxed, System, GPU), old: true},
		{name: "message passing, all volatile, fence of the writer only, devices",
			threads: messagePassing(fence(System), nil, Relaxed, Relaxed, Relaxed, System, System), old: true},
		{name: "message passing, fence of the reader only",
			threads: messagePassing(nil, fence(GPU), Weak, Relaxed, Relaxed, System, GPU), shows: true, races: true},
		{name: "message passing, release and acquire, cta, between blocks",
			threads: messagePassing(nil, nil, Weak, Release, Acquire, CTA, GPU), shows: true, races: true},
		{name: "message passing, release and acquire, gpu, between devices",
			threads: messagePassing(nil, nil, Weak, Release, Acquire, GPU, System), shows: true, races: true},
		{name: "message passing, gpu fences between devices",
			threads: messagePassing(fence(GPU), fence(GPU), Weak, Relaxed, Relaxed, System, System), shows: true, races: true},
		{name: "message passing, cta fence between blocks",
			threads: messagePassing(fence(CTA), fence(CTA), Weak, Relaxed, Relaxed, GPU, GPU), shows: true, races: true},

		{name: "message passing, release and acquire, cluster, between clusters",
			threads: messagePassing(nil, nil, Weak, Release, Acquire, Cluster, GPU), shows: true, races: true},
		{name: "message passing, release and acquire, cta, within a cluster",
			threads: messagePassing(nil, nil, Weak, Release, Acquire, CTA, Cluster), shows: true, races: true},
		{name: "message passing, cluster fences between clusters", shows: true, races: true,
			threads: messagePassing(fence(Cluster), fence(Cluster), Weak, Relaxed, Relaxed, System, GPU)},
		{name: "message passing, cta fences within a cluster", shows: true, races: true,
			threads: messagePassing(fence(CTA), fence(CTA), Weak, Relaxed, Relaxed, System, Cluster)},
		{name: "message passing, all volatile, no fence, within a cluster", shows: true,
			threads: messagePassing(nil, nil, Relaxed, Relaxed, Relaxed, System, Cluster)},
		{name: "message passing, all volatile, fence of a cluster's writer between clusters", shows: true,
			threads: messagePassing(fence(Cluster), fence(GPU), Relaxed, Relaxed, Relaxed, System, GPU)},
		{name: "cumulative, through a block of the cluster, released to the block", weak: handedOver,
			threads: throughCluster(CTA), shows: true, races: true},
		{name: "sc fences of a cluster before the barrier", weak: handedOver,
			threads: inCluster(beforeBarrier(0, fenceSC(Cluster), fenceSC(Cluster)))},
		{name: "sc fences of a cluster before the barrier, between clusters", weak: handedOver,
			threads: beforeBarrier(0, fenceSC(Cluster), fenceSC(GPU)), races: true},
		{name: "store buffering, volatile", weak: buffered, shows: true, threads: storeBuffering(nil)},
		{name: "store buffering, acq_rel fences", weak: buffered, shows: true, threads: storeBuffering(fence(GPU))},
		{name: "store buffering, release and acquire", weak: buffered, shows: true, threads: func() []*thread {
			return []*thread{{steps: []step{st(x, 1, Release, GPU), ld(0, y, Acquire, GPU)}},
				{block: 1, steps: []step{st(y, 1, Release, GPU), ld(0, x, Acquire, GPU)}}}
		}},
		{name: "readers that disagree, acq_rel fences", weak: disagree, old: true,
			threads: independent(Relaxed, Relaxed, fence(GPU))},
		{name: "readers that disagree, release and acquire", weak: disagree, old: true,
			threads: independent(Release, Acquire, nil)},
		{name: "cumulative, fence after the barrier",
			weak: func(t []*thread) bool { return t[2].r[0] == 1 && t[2].r[1] == 0 }, threads: throughBarrier(fence(GPU))},
		{name: "cumulative, no fence after the barrier",
			weak: func(t []*thread) bool { return t[2].r[0] == 1 && t[2].r[1] == 0 }, threads: throughBarrier(nil), shows: true,
			races: true},
		{name: "cumulative, cta fence after the barrier",
			weak: func(t []*thread) bool { return t[2].r[0] == 1 && t[2].r[1] == 0 }, threads: throughBarrier(fence(CTA)),
			shows: true, races: true},

		// Fences of all threads before the barrier, in place of one after: only fences of order SeqCst on both sides have an
		// order of their own, which the flag that was seen decides.
		{name: "sc fences before the barrier", weak: handedOver, threads: beforeBarrier(0, fenceSC(GPU), fenceSC(GPU))},
		{name: "sc fence before the barrier, acq_rel behind the flag", weak: handedOver,
			threads: beforeBarrier(0, fenceSC(GPU), fence(GPU)), races: true},
		{name: "acq_rel fence before the barrier, sc behind the flag", weak: handedOver,
			threads: beforeBarrier(0, fence(GPU), fenceSC(GPU)), races: true},
		{name: "sc fences of the system before the barrier, two devices", weak: handedOver,
			threads: beforeBarrier(1, fenceSC(System), fenceSC(System))},
		{name: "sc fences of a GPU before the barrier, two devices", weak: handedOver,
			threads: beforeBarrier(1, fenceSC(GPU), fenceSC(System)), races: true},
		{name: "sc fences of blocks before the barrier", weak: handedOver,
			threads: beforeBarrier(0, fenceSC(CTA), fenceSC(GPU)), races: true},

		{name: "message passing by red, no fence", shows: true, threads: redPassing(nil)},
		{name: "message passing by red, fence of the writer", old: false, threads: redPassing(fence(GPU))},
		{name: "message passing by red, fence of the block between blocks", shows: true, threads: redPassing(fence(CTA))},
		{name: "acquired by another warp before a barrier", weak: func(t []*thread) bool { return t[2].r[0] == 0 },
			threads: func() []*thread {
				passed := false
				return []*thread{
					{steps: []step{st(x, 1, Relaxed, GPU), st(ready, 1, Release, GPU)}},
					{block: 1, steps: []step{until(0, ready, 1, Acquire, GPU),
						func(t *thread) bool { passed = true; return barrier(t) }}},
					{block: 1, warp: 1, steps: []step{
						func(t *thread) bool { t.again = !passed; return true },
						ld(0, x, Relaxed, GPU),
					}},
				}
			}},
	}
	for _, l := range tests {
		t.Run(l.name, func(t *testing.T) {
			if l.weak == nil {
				l.weak = stale
			}
			weak, races, tried := l.runAll(false, l.shows)
			if l.shows || !l.races { // what a program with a race shows may be anything
				require.Equal(t, l.shows, weak > 0, "the weak outcome was seen %d times of %d", weak, tried)
			}
			require.Equal(t, l.races, races > 0, "a race was found %d times of %d", races, tried)
			weak, _, tried = l.runAll(true, l.shows || l.old)
			if l.shows || l.old || !l.races {
				require.Equal(t, l.shows || l.old, weak > 0, "with old loads the weak outcome was seen %d times of %d", weak, tried)
			}
		})
	}
}

// inCluster has all blocks be of one cluster.
func inCluster(threads func() []*thread) func() []*thread {
	return func() []*thread {
		all := threads()
		for _, t := range all {
			t.cluster = 1
		}
		return all
	}
}

// throughCluster has a block store for another one of its cluster, which tells a block outside.
func throughCluster(s Scope) func() []*thread {
	return func() []*thread {
		return []*thread{
			{cluster: 1, steps: []step{st(x, 1, Weak, GPU), st(y, 1, Release, s)}},
			{block: 1, cluster: 1, steps: []step{until(0, y, 1, Acquire, Cluster), st(ready, 1, Release, GPU)}},
			{block: 2, steps: []step{until(0, ready, 1, Acquire, GPU), ld(1, x, Weak, GPU)}},
		}
	}
}

func buffered(t []*thread) bool { return t[0].r[0] == 0 && t[1].r[0] == 0 }

// independent is two stores that two others read, each in another order.
func independent(store, load Order, between step) func() []*thread {
	return func() []*thread {
		all := []*thread{{steps: []step{st(x, 1, store, GPU)}}, {block: 1, steps: []step{st(y, 1, store, GPU)}}}
		for i, addr := range [][2]uint64{{x, y}, {y, x}} {
			reader := &thread{block: 2 + i, steps: []step{ld(0, addr[0], load, GPU)}}
			if between != nil {
				reader.steps = append(reader.steps, between)
			}
			reader.steps = append(reader.steps, ld(1, addr[1], load, GPU))
			all = append(all, reader)
		}
		return all
	}
}

func disagree(t []*thread) bool {
	return t[2].r[0] == 1 && t[2].r[1] == 0 && t[3].r[0] == 1 && t[3].r[1] == 0
}

func storeBuffering(between step) func() []*thread {
	return func() []*thread {
		a := &thread{steps: []step{st(x, 1, Relaxed, GPU)}}
		b := &thread{block: 1, steps: []step{st(y, 1, Relaxed, GPU)}}
		if between != nil {
			a.steps, b.steps = append(a.steps, between), append(b.steps, between)
		}
		a.steps, b.steps = append(a.steps, ld(0, y, Relaxed, GPU)), append(b.steps, ld(0, x, Relaxed, GPU))
		return []*thread{a, b}
	}
}

// beforeBarrier hands x over: a thread stores it, makes a fence and meets another one at a barrier, which stores a flag
// without order. The reader, on a device, waits for the flag and makes a fence.
func beforeBarrier(device int, writer, reader step) func() []*thread {
	return func() []*thread {
		met := false
		wait := func(t *thread) bool { t.again = !met; return true }
		return []*thread{
			{steps: []step{st(x, 1, Weak, GPU), writer, barrier, func(*thread) bool { met = true; return true }}},
			{lane: 1, steps: []step{wait, st(y, 1, Relaxed, System)}},
			{device: device, block: 1, steps: []step{until(0, y, 1, Relaxed, System), reader, ld(1, x, Weak, GPU)}},
		}
	}
}

// handedOver is the outcome in which the flag was seen and x was not.
func handedOver(t []*thread) bool { return t[2].r[0] == 1 && t[2].r[1] == 0 }

// throughBarrier has thread 0 store, its block pass a barrier, thread 1 set a
// flag and another block read.
func throughBarrier(after step) func() []*thread {
	return func() []*thread {
		passed := false
		stores := &thread{steps: []step{st(x, 1, Weak, GPU), func(t *thread) bool { passed = true; return barrier(t) }}}
		flags := &thread{warp: 1}
		flags.steps = []step{func(t *thread) bool { t.again = !passed; return true }}
		if after != nil {
			flags.steps = append(flags.steps, after)
		}
		flags.steps = append(flags.steps, st(ready, 1, Relaxed, GPU))
		reads := &thread{block: 1, steps: []step{until(0, ready, 1, Acquire, GPU), ld(1, x, Weak, GPU)}}
		return []*thread{stores, flags, reads}
	}
}
