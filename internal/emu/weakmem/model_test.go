package weakmem

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringo-go/ringo/internal/emu/alu"
)

// The model is what weakmem is compared with: a list of all accesses to each
// byte, and a full vector clock for each thread. It knows nothing of time: what
// a load read says which store it read from, as each stores a value of its own.

const (
	modelBytes = 32
	actors     = 7 // six threads and the driver
	driver     = 6
)

// modelThreads are two warps of a block, another block, another device, another block of the first one's cluster.
var modelThreads = [driver]thread{{cluster: 1}, {lane: 1, cluster: 1}, {warp: 1, cluster: 1}, {block: 1},
	{block: 1, device: 1}, {block: 2, cluster: 1}}

type stamps [actors]int

func (s *stamps) join(o stamps) {
	for i := range s {
		s[i] = max(s[i], o[i])
	}
}

// An event is an access in the model.
type event struct {
	actor, at int
	write     bool
	strong    bool
	scope     Scope
	value     byte // of a write
	known     stamps
}

type handed struct {
	actor int
	known [System + 1]stamps // by scope; zero if nothing
}

type model struct {
	clocks   [actors]stamps
	observed [actors][System + 1]stamps
	fenced   [actors][System + 1]stamps
	events   [modelBytes][]event
	chain    map[byte][]byte       // by the value of an atomic operation, those that it and others before it replaced
	any      bool                  // somebody has read what a strong store has written
	seen     [actors]map[byte]bool // values of strong stores that were observed, which are before what follows
	handed   map[byte][]handed     // by the value of a store of 4 bytes, what it hands on
}

// reach is the scope that holds both.
func reach(a, b int) Scope {
	switch {
	case a == b:
		return CTA
	case a == driver || b == driver:
		return System
	}
	return modelThreads[a].apart(&modelThreads[b])
}

// races says whether an access would.
func (m *model) races(actor int, addr, size int, e event) bool {
	for i := addr; i < addr+size; i++ {
		for _, o := range m.events[i] {
			need := reach(actor, o.actor)
			mutual := e.strong && o.strong && e.scope >= need && o.scope >= need
			if o.write && o.strong && m.seen[actor][o.value] {
				continue
			}
			if (e.write || o.write) && !mutual && m.clocks[actor][o.actor] < o.at {
				return true
			}
		}
	}
	return false
}

// access says whether it races.
func (m *model) access(actor int, addr, size int, e event) bool {
	races := m.races(actor, addr, size, e)
	m.clocks[actor][actor]++
	e.actor, e.at = actor, m.clocks[actor][actor]
	e.known = m.clocks[actor]
	for i := addr; i < addr+size; i++ {
		m.events[i] = append(m.events[i], e)
	}
	return races
}

// legal says whether a byte read now may have the value: if no later write is
// known to the reader.
func (m *model) legal(actor, at int, v byte) bool {
	hidden, found := false, v == 0
	for _, w := range m.events[at] {
		if w.write && w.value == v {
			found = true
			for _, o := range m.events[at] {
				if o.write && o.value != v && o.known[w.actor] >= w.at && m.clocks[actor][o.actor] >= o.at {
					hidden = true
				}
			}
		}
		if v == 0 && w.write && m.clocks[actor][w.actor] >= w.at {
			hidden = true
		}
	}
	return found && !hidden
}

// acquire is what a strong load of 4 bytes of a value does.
func (m *model) acquire(actor int, v uint32, o Order, s Scope) {
	if v != uint32(byte(v))*0x01010101 {
		return // parts of several stores
	}
	m.any = m.any || m.handed[byte(v)] != nil
	for _, h := range m.handed[byte(v)] {
		need := reach(actor, h.actor)
		if s < need {
			continue
		}
		if h.known[need] != (stamps{}) && actor != driver {
			m.observe(actor, byte(v))
		}
		if o == Acquire || o == AcqRel || o == SeqCst {
			m.clocks[actor].join(h.known[need])
		} else {
			m.observed[actor][need].join(h.known[need])
		}
	}
}

// observe notes that an actor has observed the store of a value, and what it replaced if it was atomic.
func (m *model) observe(actor int, v byte) {
	if m.seen[actor] == nil {
		m.seen[actor] = map[byte]bool{}
	}
	for _, v := range append(m.chain[v], v) {
		m.seen[actor][v] = true
	}
}

// release is what a strong store or atomic hands on.
func (m *model) release(actor int, o Order, s Scope) []handed {
	h := handed{actor: actor}
	for scope := range s + 1 {
		h.known[scope] = m.fenced[actor][scope]
		if o >= Release {
			h.known[scope] = m.clocks[actor]
		}
	}
	return []handed{h}
}

func (m *model) fence(actor int, s Scope) {
	m.clocks[actor][actor]++
	for scope := range s + 1 {
		m.clocks[actor].join(m.observed[actor][scope])
	}
	for scope := range s + 1 {
		m.fenced[actor][scope] = m.clocks[actor]
	}
}

func (m *model) meet(actors ...int) {
	var all stamps
	for _, a := range actors {
		m.clocks[a][a]++
		all.join(m.clocks[a])
	}
	for _, a := range actors {
		m.clocks[a] = all
	}
}

// Random programs race at the same access in both, and until then read only
// what the model allows.
func TestAgainstModel(t *testing.T) {
	races, ran := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t)
		n := rapid.IntRange(20, 120).Draw(t, "length")
		for i := 1; i <= n; i++ {
			if p.step(t, byte(i)) {
				races++
				return
			}
			ran++
		}
	})
	require.Greater(t, races, 2, "programs race")
	require.Greater(t, ran, 200, "and run for a while")
}

// A pair is Memory and the model, doing the same.
type pair struct {
	model  model
	memory *Memory
	blocks map[[2]int]*Block
	found  int // races of Memory
	now    Clock
	plan   []action
	log    strings.Builder
}

func newPair(t *rapid.T) *pair {
	p := &pair{blocks: map[[2]int]*Block{}}
	p.model.handed, p.model.chain = map[byte][]handed{}, map[byte][]byte{}
	p.memory = New(Config{Seed: rapid.Uint64().Draw(t, "seed"), OldLoads: rapid.Bool().Draw(t, "old loads"),
		Report: func(*Fault) bool { p.found++; return true }})
	require.NoError(t, p.memory.Map(Allocation{Addr: x, Data: make([]byte, modelBytes), Name: "x"}))
	for _, th := range modelThreads {
		at := [2]int{th.device, th.block}
		if p.blocks[at] == nil {
			p.blocks[at] = p.memory.Begin(th.device, "k", Clock{}).Block([3]int{th.block, 0, 0}, [3]int{33, 1, 1}, 0)
		}
	}
	p.block(0).grid.Cluster(p.block(0), p.block(driver-1))
	return p
}

func (p *pair) block(actor int) *Block {
	return p.blocks[[2]int{modelThreads[actor].device, modelThreads[actor].block}]
}

// An action is one step of a random program.
type action struct {
	what          string
	actor         int
	scope         Scope
	order         Order
	addr, size    int
	store, strong bool
}

// draw makes up an action, or goes on with passing a message.
func (p *pair) draw(t *rapid.T) action {
	if len(p.plan) > 0 && rapid.IntRange(0, 3).Draw(t, "go on") > 0 {
		a := p.plan[0]
		p.plan = p.plan[1:]
		return a
	}
	a := action{
		actor: rapid.IntRange(0, actors-1).Draw(t, "actor"),
		scope: rapid.SampledFrom([]Scope{CTA, Cluster, GPU, System, System}).Draw(t, "scope"),
		what: rapid.SampledFrom([]string{"access", "access", "flag", "read flag", "atomic", "fence", "barrier", "named",
			"syncwarp", "pair",
			"message", "message", "message"}).Draw(t, "what"),
		store: rapid.Bool().Draw(t, "store"),
	}
	switch a.what {
	case "access", "pair":
		a.size = rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "size")
		a.addr = a.size * rapid.IntRange(0, modelBytes/a.size-2).Draw(t, "addr")
		a.strong = a.what == "access" && a.size == 4 && rapid.Bool().Draw(t, "strong")
	case "flag", "read flag", "atomic":
		a.addr = 4 * rapid.IntRange(0, 3).Draw(t, "addr")
		a.order = rapid.SampledFrom([]Order{Relaxed, Acquire, Release, AcqRel}).Draw(t, "order")
	case "message":
		p.message(t, a)
	}
	return a
}

// message plans that one actor stores, says so to another one by a flag, and
// that this one loads: with or without fences, and sometimes late.
func (p *pair) message(t *rapid.T, a action) {
	b := a
	b.actor = rapid.IntRange(0, actors-1).Draw(t, "reader")
	at := func(x action, what string, addr, size int, store bool) action {
		x.what, x.addr, x.size, x.store = what, addr, size, store
		return x
	}
	maybe := func(x action, what string) {
		if rapid.Bool().Draw(t, what) {
			p.plan = append(p.plan, at(x, what, 0, 0, false))
		}
	}
	data := 16 + 4*rapid.IntRange(0, 3).Draw(t, "data")
	flag := 4 * rapid.IntRange(0, 3).Draw(t, "flag")
	orders := []Order{Relaxed, Release, Acquire}
	a.order, b.order = rapid.SampledFrom(orders[:2]).Draw(t, "release"),
		rapid.SampledFrom([]Order{Relaxed, Acquire}).Draw(t, "acquire")
	early := rapid.Bool().Draw(t, "early")
	p.plan = append(p.plan[:0], at(a, "access", data, 4, true))
	maybe(a, "barrier")
	maybe(a, "fence")
	if !early {
		p.plan = append(p.plan, at(a, "flag", flag, 4, true))
	}
	if rapid.IntRange(0, 3).Draw(t, "more") == 0 { // after what is released
		p.plan = append(p.plan, at(a, "access", data, 4, true))
	}
	if early {
		p.plan = append(p.plan, at(a, "flag", flag, 4, true))
	}
	maybe(a, "fence")
	maybe(a, "syncwarp")
	p.plan = append(p.plan, at(b, "read flag", flag, 4, false))
	maybe(b, "fence")
	maybe(b, "barrier")
	p.plan = append(p.plan, at(b, "access", data, 4, rapid.Bool().Draw(t, "overwrite")))
}

// step does something at random in both and compares. It says whether it raced.
func (p *pair) step(t *rapid.T, v byte) bool {
	for range rapid.IntRange(0, 2).Draw(t, "ticks") {
		p.memory.Tick()
	}
	a := p.draw(t)
	actor, addr, o, s := a.actor, a.addr, a.order, a.scope
	var races bool
	switch {
	case a.what == "message":
		return false
	case actor == driver:
		races = p.drive(t, a, v)
	case a.what == "access":
		races = p.access(t, actor, 1<<modelThreads[actor].lane, addr, a.size, a.store, a.strong, s, v)
	case a.what == "pair": // of the first two threads
		races = p.access(t, 0, 3, addr, a.size, a.store, false, s, v)
	case a.what == "flag":
		if o == Acquire || o == AcqRel {
			o = Release
		}
		e := event{write: true, strong: true, scope: s, value: v}
		if p.avoid(t, actor, addr, 4, e) {
			return false
		}
		p.logf("%d: store %#x = %d order %d scope %d", actor, addr, v, o, s)
		races = p.model.access(actor, addr, 4, e)
		p.model.handed[v] = p.model.release(actor, o, s)
		require.True(t, st(x+uint64(addr), uint64(v)*0x01010101, o, s)(p.thread(actor)))
	case a.what == "read flag":
		if o == Release || o == AcqRel {
			o = Acquire
		}
		th, e := p.thread(actor), event{strong: true, scope: s}
		if p.avoid(t, actor, addr, 4, e) {
			return false
		}
		races = p.model.access(actor, addr, 4, e)
		require.True(t, ld(0, x+uint64(addr), o, s)(th))
		p.logf("%d: load %#x order %d scope %d: %#x", actor, addr, o, s, th.r[0])
		p.read(t, actor, addr, th.r[0], 4, races)
		p.model.acquire(actor, uint32(th.r[0]), o, s)
	case a.what == "atomic":
		var old alu.Lanes
		th, e := p.thread(actor), event{write: true, strong: true, scope: s, value: v}
		if p.avoid(t, actor, addr, 4, e) {
			return false
		}
		p.logf("%d: exchange %#x = %d order %d scope %d", actor, addr, v, o, s)
		races = p.model.access(actor, addr, 4, e)
		f := th.on.Atomic(th.warp, 1<<th.lane, one(th.lane, x+uint64(addr)), 4, &old,
			func(int, uint64) uint64 { return uint64(v) * 0x01010101 }, th.how(o, s))
		require.Nil(t, f)
		was := uint32(old[th.lane])
		p.model.acquire(actor, was, o, s)
		h := p.model.release(actor, o, s)
		if was == uint32(byte(was))*0x01010101 {
			p.model.observe(actor, byte(was))
			p.model.chain[v] = append(slices.Clone(p.model.chain[byte(was)]), byte(was))
			h = append(h, p.model.handed[byte(was)]...)
		}
		p.model.handed[v] = h
	case a.what == "fence":
		p.logf("%d: fence scope %d", actor, s)
		p.model.fence(actor, s)
		fence(s)(p.thread(actor))
	case a.what == "barrier":
		b := p.block(actor)
		var all []int
		for i := range modelThreads {
			if p.block(i) == b {
				all = append(all, i)
			}
		}
		p.logf("barrier of %v", all)
		p.model.meet(all...)
		barrier(p.thread(actor))
	case a.what == "named": // a barrier of some threads of the first block
		who := rapid.SampledFrom([]struct {
			actors []int
			masks  []uint32
		}{{[]int{0, 1}, []uint32{^uint32(0), 0}}, {[]int{0, 2}, []uint32{1, 1}}, {[]int{1, 2}, []uint32{2, 1}},
			{[]int{0, 1, 2}, []uint32{3, 1}}}).Draw(t, "who")
		p.logf("barrier of %v", who.actors)
		p.model.meet(who.actors...)
		p.block(0).Barrier(who.masks)
	case a.what == "syncwarp":
		b := p.block(0)
		if a.store {
			p.logf("0, 1: sync in part")
			b.SyncWarp(0, 3)
		} else {
			p.logf("0, 1: sync")
			b.SyncWarp(0, ^uint32(0))
		}
		p.model.meet(0, 1)
	}
	if races != (p.found > 0) && p.model.any {
		return true // with a store that was observed, of which the model has not all ways: TestAxioms has them
	}
	require.Equal(t, races, p.found > 0, "races, in the model and here, after\n%s", p.log.String())
	return races
}

// avoid says whether to rather not do what races, so that programs become longer.
func (p *pair) avoid(t *rapid.T, actor, addr, size int, e event) bool {
	return p.model.races(actor, addr, size, e) && rapid.IntRange(0, 19).Draw(t, "race") != 0
}

// access is a load or store of neighbouring bytes by some lanes, the first of them the actor's.
func (p *pair) access(t *rapid.T, actor int, mask uint32, addr, size int, store, strong bool, s Scope,
	v byte) (races bool) {
	th := p.thread(actor)
	var at, reg alu.Lanes
	lanes := 1
	if mask == 3 {
		lanes = 2
	}
	e := event{write: store, strong: strong, scope: s, value: v}
	if p.avoid(t, actor, addr, size, e) || lanes == 2 && p.avoid(t, actor+1, addr+size, size, e) {
		return false
	}
	p.logf("%d: access of %d lanes, store %v, strong %v, of %d bytes at %#x = %d", actor, lanes, store, strong, size,
		addr, v)
	for i := range lanes {
		at[th.lane+i] = uint64(x + addr + i*size)
		reg[th.lane+i] = 0x0101010101010101 * uint64(v)
		races = p.model.access(actor+i, addr+i*size, size, e) || races
	}
	how := th.how(Weak, s)
	if strong {
		how.Order = Relaxed
	}
	if store {
		if size == 4 && strong {
			p.model.handed[v] = p.model.release(actor, Relaxed, s)
		}
		require.Nil(t, th.on.Store(th.warp, mask, &at, size, []*alu.Lanes{&reg}, how))
		return races
	}
	require.Nil(t, th.on.Load(th.warp, mask, &at, size, []*alu.Lanes{&reg}, how))
	for i := range lanes {
		p.read(t, actor+i, addr+i*size, reg[th.lane+i], size, races)
		if strong {
			p.model.acquire(actor, uint32(reg[th.lane+i]), Relaxed, s)
		}
	}
	return races
}

// drive has the driver do something.
func (p *pair) drive(t *rapid.T, a action, v byte) (races bool) {
	addr, size := a.addr, 7
	e := event{write: a.what == "access" && a.store || a.what == "flag", value: v}
	switch a.what {
	case "access":
		addr = min(addr, modelBytes-size)
	case "flag", "read flag":
		size, e.strong, e.scope = 4, true, System
	default:
		return false
	}
	if p.avoid(t, driver, addr, size, e) {
		return false
	}
	p.logf("driver: %s %#x = %d, store %v", a.what, addr, v, a.store)
	races = p.model.access(driver, addr, size, e)
	var err error
	switch {
	case a.what == "access" && !a.store:
		b := make([]byte, size)
		p.now, err = p.memory.Read(b, uint64(x+addr), p.now)
		for i, c := range b {
			p.read(t, driver, addr+i, uint64(c), 1, races)
		}
	case a.what == "access":
		p.now, err = p.memory.Write(uint64(x+addr), []byte{v, v, v, v, v, v, v}, p.now)
	case a.what == "flag":
		p.model.handed[v] = p.model.release(driver, Release, System)
		p.now, err = p.memory.StoreRelease(uint64(x+addr), uint64(v)*0x01010101, 4, p.now)
	default:
		var got uint64
		got, p.now, err = p.memory.LoadAcquire(uint64(x+addr), 4, p.now)
		p.read(t, driver, addr, got, 4, races)
		p.model.acquire(driver, uint32(got), Acquire, System)
	}
	require.NoError(t, err)
	return races
}

// read checks what an actor read.
func (p *pair) read(t *rapid.T, actor, addr int, v uint64, size int, races bool) {
	for i := range size {
		c := byte(v >> (8 * i))
		require.True(t, races || p.model.legal(actor, addr+i, c), "%d must not read %d at %#x after\n%s", actor, c, addr+i,
			p.log.String())
	}
}

func (p *pair) thread(actor int) *thread {
	th := modelThreads[actor]
	th.on, th.line = p.block(actor), 1
	return &th
}

func (p *pair) logf(format string, args ...any) { fmt.Fprintf(&p.log, format+"\n", args...) }
