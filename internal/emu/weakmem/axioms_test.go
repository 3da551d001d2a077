package weakmem

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// The axioms of PTX's memory model (PTX ISA, 8.8 to 8.10; Lustig, Sahasrabuddhe and Giroux, ASPLOS 2019), for programs
// of a few loads, stores and fences. All executions are enumerated: which store each load reads from, in which order
// the stores to a location lie, in which order fence.sc are. Those that break no axiom are what a program may do.

// An op is a load, a store, an atomic addition or a fence of a thread.
type op struct {
	thread int
	read   bool // an atomic operation reads and writes
	write  bool
	fence  bool
	at     int // location
	value  int // that is stored or added
	reg    int // that gets what is read; -1: none, as of red
	order  Order
	scope  Scope
}

func (o op) String() string {
	scope := [...]string{"cta", "cluster", "gpu", "sys"}[o.scope]
	order := [...]string{"weak", "relaxed", "acquire", "release", "acq_rel", "sc"}[o.order]
	switch {
	case o.fence:
		return fmt.Sprintf("fence.%s.%s", order, scope)
	case o.write && o.reg < 0 && o.read:
		return fmt.Sprintf("red.%s.%s [%c], %d", order, scope, 'x'+o.at, o.value)
	case o.write && o.read:
		return fmt.Sprintf("r%d = atom.%s.%s [%c], %d", o.reg, order, scope, 'x'+o.at, o.value)
	case o.write:
		return fmt.Sprintf("st.%s.%s [%c], %d", order, scope, 'x'+o.at, o.value)
	}
	return fmt.Sprintf("r%d = ld.%s.%s [%c]", o.reg, order, scope, 'x'+o.at)
}

// spots are where threads may run: two warps of a block, another block, another device, another block of the first
// one's cluster.
var spots = []thread{{cluster: 1}, {warp: 1, cluster: 1}, {block: 1}, {block: 1, device: 1}, {block: 2, cluster: 1}}

// distance is the least scope that holds threads at two spots.
func distance(a, b int) Scope { return spots[a].apart(&spots[b]) }

// A relation holds between operations: bit b of row a.
type relation []uint32

func (r relation) has(a, b int) bool { return r[a]>>b&1 != 0 }
func (r relation) add(a, b int)      { r[a] |= 1 << b }

func union(rs ...relation) relation {
	all := make(relation, len(rs[0]))
	for _, r := range rs {
		for i := range r {
			all[i] |= r[i]
		}
	}
	return all
}

// then is what leads from one operation to another by a and then b.
func (r relation) then(s relation) relation {
	all := make(relation, len(r))
	for i := range r {
		for m := r[i]; m != 0; m &= m - 1 {
			all[i] |= s[bits.TrailingZeros32(m)]
		}
	}
	return all
}

// closed is the transitive closure.
func (r relation) closed() relation {
	all := slices.Clone(r)
	for k := range all {
		for i := range all {
			if all.has(i, k) {
				all[i] |= all[k]
			}
		}
	}
	return all
}

func (r relation) reflexive() bool {
	for i := range r {
		if r.has(i, i) {
			return true
		}
	}
	return false
}

// A program is operations, those of a thread in their order, after the first stores of all locations.
type program struct {
	ops   []op
	place []int // of threads
	regs  int
}

const locations = 2

// first is how many operations write the first values, before all threads.
const first = locations

func (p *program) strong(a, b int) bool { // morally strong
	x, y := &p.ops[a], &p.ops[b]
	if a < first || b < first || x.thread == y.thread {
		return a != b
	}
	need := distance(p.place[x.thread], p.place[y.thread])
	return x.order != Weak && y.order != Weak && x.scope >= need && y.scope >= need &&
		(x.fence || y.fence || x.at == y.at)
}

// allowed are the outcomes that the axioms allow, and whether some execution has a race.
func (p *program) allowed() (outcomes map[string]bool, races bool) {
	n := len(p.ops)
	order := make(relation, n) // program order
	var loads, fences []int
	stores := make([][]int, locations)
	for a, x := range p.ops {
		for b := a + 1; b < n; b++ {
			if a < first && b >= first || a >= first && x.thread == p.ops[b].thread {
				order.add(a, b)
			}
		}
		if x.fence && x.order == SeqCst {
			fences = append(fences, a)
		}
		if x.write && a >= first {
			stores[x.at] = append(stores[x.at], a)
		}
		if x.read {
			loads = append(loads, a)
		}
	}
	outcomes = map[string]bool{}
	from := make([]int, n)
	var choose func(l int, coherence [][]int, sc []int)
	choose = func(l int, coherence [][]int, sc []int) {
		if l < len(loads) {
			at := p.ops[loads[l]].at
			for _, w := range append([]int{at}, stores[at]...) {
				from[loads[l]] = w
				choose(l+1, coherence, sc)
			}
			return
		}
		ok, race := p.holds(order, from, loads, coherence, sc)
		if !ok {
			return
		}
		races = races || race
		got, values := make([]int, p.regs+locations), make([]int, n)
		for at, list := range coherence {
			last := at
			for _, w := range list { // what an atomic operation reads lies right before it
				if values[w] = p.ops[w].value; p.ops[w].read {
					values[w] += values[last]
				}
				last = w
			}
			got[p.regs+at] = values[last]
		}
		for _, r := range loads {
			if reg := p.ops[r].reg; reg >= 0 {
				got[reg] = values[from[r]]
			}
		}
		outcomes[fmt.Sprint(got)] = true
	}
	for _, a := range permutations(stores[0]) {
		for _, b := range permutations(stores[1]) {
			for _, sc := range permutations(fences) {
				choose(0, [][]int{a, b}, sc)
			}
		}
	}
	return outcomes, races
}

func permutations(of []int) (all [][]int) {
	if len(of) < 2 {
		return [][]int{of}
	}
	for i := range of {
		for _, rest := range permutations(slices.Delete(slices.Clone(of), i, i+1)) {
			all = append(all, append([]int{of[i]}, rest...))
		}
	}
	return all
}

// holds reports whether an execution breaks no axiom, and whether two operations race in it.
func (p *program) holds(order relation, from, loads []int, coherence [][]int, sc []int) (ok, race bool) {
	n := len(p.ops)
	none := func() relation { return make(relation, n) }
	co, rf, fr, fenced := none(), none(), none(), none()
	for at, list := range coherence {
		list = append([]int{at}, list...)
		for i := range list {
			for _, later := range list[i+1:] {
				co.add(list[i], later)
			}
		}
	}
	for _, r := range loads {
		rf.add(from[r], r)
		fr[r] = co[from[r]] &^ (1 << r)
		for at := range coherence { // Atomicity: nothing lies between what is read and what is written
			if list := append([]int{at}, coherence[at]...); p.ops[r].write && p.ops[r].at == at &&
				slices.Index(list, from[r])+1 != slices.Index(list, r) {
				return false, false
			}
		}
	}
	for i := range sc {
		for _, later := range sc[i+1:] {
			if p.strong(sc[i], later) {
				fenced.add(sc[i], later)
			}
		}
	}
	strongly := func(r relation) relation {
		s := none()
		for a := range r {
			for m := r[a]; m != 0; m &= m - 1 {
				if b := bits.TrailingZeros32(m); p.strong(a, b) {
					s.add(a, b)
				}
			}
		}
		return s
	}
	same := none() // program order of a location
	for a := first; a < n; a++ {
		for b := a + 1; b < n; b++ {
			if order.has(a, b) && !p.ops[a].fence && !p.ops[b].fence && p.ops[a].at == p.ops[b].at {
				same.add(a, b)
			}
		}
	}
	observed := strongly(rf).closed() // through atomic operations

	// Patterns: from their first operation to the strong store, and from the strong load to their last one.
	releases, acquires := none(), none()
	for a := first; a < n; a++ {
		for b := first; b < n; b++ {
			x, y := &p.ops[a], &p.ops[b]
			if y.write && y.order != Weak {
				if x.fence && order.has(a, b) || x.write && x.order >= Release && (a == b || same.has(a, b)) {
					releases.add(a, b)
				}
			}
			if x.read && x.order != Weak {
				acquire := y.read && (y.order == Acquire || y.order == AcqRel)
				if y.fence && order.has(a, b) || acquire && (a == b || same.has(a, b)) {
					acquires.add(a, b)
				}
			}
		}
	}
	synchronizes := strongly(releases.then(observed).then(acquires))
	base := union(order, synchronizes, fenced).closed()
	causality := union(base, observed.then(base))

	// Coherence: stores of a location that causality orders lie in that order.
	for a := range n {
		for b := range n {
			if p.overlap(a, b) && p.ops[a].write && p.ops[b].write && causality.has(a, b) && !co.has(a, b) {
				return false, false
			}
		}
	}
	switch {
	case fenced.then(causality).reflexive(), // Fence-SC
		union(strongly(union(rf, co, fr)), same).closed().reflexive(), // a location is sequentially consistent
		union(rf, fr).then(causality).reflexive():                     // Causality
		return false, false
	}
	for a := first; a < n; a++ {
		for b := first; b < n; b++ {
			if a != b && p.overlap(a, b) && (p.ops[a].write || p.ops[b].write) && !p.strong(a, b) &&
				!causality.has(a, b) && !causality.has(b, a) {
				race = true
			}
		}
	}
	return true, race
}

func (p *program) overlap(a, b int) bool {
	return a != b && !p.ops[a].fence && !p.ops[b].fence && p.ops[a].at == p.ops[b].at
}

// randomProgram has two or three threads of up to three operations. In every other program all are strong and of the
// widest scope, so that nothing races; every other one has the shape of those that papers give names to.
func randomProgram(rnd *rand.Rand) *program {
	p := &program{}
	for at := range locations {
		p.ops = append(p.ops, op{thread: -1, write: true, at: at})
	}
	value, wide, classic := 0, rnd.IntN(2) == 0, rnd.IntN(2) == 0
	for t := range 2 + rnd.IntN(2) {
		p.place = append(p.place, rnd.IntN(len(spots)))
		for slices.Contains(p.place[:t], p.place[t]) {
			p.place[t] = rnd.IntN(len(spots))
		}
		begins := rnd.IntN(locations)
		for i := range 2 + rnd.IntN(2) {
			kind := rnd.IntN(6)
			o := op{thread: t, at: rnd.IntN(locations), read: kind < 4, write: kind > 1, scope: min(System, Scope(rnd.IntN(5)))}
			if classic { // one location, maybe a fence, the other location
				o.at = (begins + i) % locations
				if o.read, o.write = rnd.IntN(2) == 0, false; !o.read {
					o.write = true
				}
				if i == 2 {
					fence := op{thread: t, fence: true, order: []Order{AcqRel, SeqCst}[rnd.IntN(2)], scope: o.scope}
					if wide {
						fence.scope = System
					}
					p.ops = slices.Insert(p.ops, len(p.ops)-1, fence)
					break
				}
			}
			o.order = []Order{Weak, Relaxed, Relaxed, Acquire}[rnd.IntN(4)]
			if wide {
				o.order, o.scope = max(o.order, Relaxed), System
			}
			switch {
			case !classic && i > 0 && rnd.IntN(3) == 0:
				o.read, o.write, o.fence, o.order = false, false, true, []Order{AcqRel, SeqCst}[rnd.IntN(2)]
			case o.read && o.write:
				o.order, o.reg = []Order{Relaxed, Relaxed, Acquire, Release, AcqRel}[rnd.IntN(5)], -1
				if rnd.IntN(2) == 0 {
					o.reg = p.regs
					p.regs++
				} else {
					o.order = min(o.order, Release)
					if o.order == Acquire {
						o.order = Relaxed
					}
				}
				value++
				o.value = 10 * value
			case o.write:
				if value++; o.order == Acquire {
					o.order = Release
				}
				o.value = value
			default:
				o.reg = p.regs
				p.regs++
			}
			p.ops = append(p.ops, o)
		}
	}
	return p
}

// executions is how many there are to look at.
func (p *program) executions() int {
	stores, fences := [locations]int{}, 0
	for _, o := range p.ops[first:] {
		switch {
		case o.fence && o.order == SeqCst:
			fences++
		case o.write:
			stores[o.at]++
		}
	}
	factorial := [...]int{1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880}
	n := factorial[stores[0]] * factorial[stores[1]] * factorial[fences]
	for _, o := range p.ops[first:] {
		if o.read {
			n *= 1 + stores[o.at]
		}
	}
	return n
}

// late is the operations in an order in which they may be carried out: some loads after what follows them.
func (p *program) late(rnd *rand.Rand) []op {
	ops := slices.Clone(p.ops[first:])
	for i := len(ops) - 1; i >= 0; i-- {
		load := ops[i]
		if !load.read || load.write || load.order != Relaxed || rnd.IntN(2) == 0 {
			continue
		}
		for k := i + 1; k < len(ops); k++ {
			o := ops[k]
			passes := !o.fence && o.read != o.write && (How{Order: o.order}).Passes() && o.at != load.at
			if o.thread == load.thread && (!passes || rnd.IntN(4) == 0) {
				break
			}
			ops[k-1], ops[k] = o, load
		}
	}
	return ops
}

// run carries the program out under a seed.
func (p *program) run(seed uint64, old bool) (outcome string, raced bool) {
	ops := p.ops[first:]
	if seed%4 > 1 {
		ops = p.late(rand.New(rand.NewPCG(seed, 2)))
	}
	got := make([]int, p.regs+locations)
	l := litmus{weak: func([]*thread) bool { return false }, threads: func() []*thread {
		threads := make([]*thread, len(p.place))
		for t := range threads {
			at := spots[p.place[t]]
			threads[t] = &at
		}
		for _, o := range ops {
			addr := []uint64{x, y}[o.at]
			step := func(t *thread) bool { t.on.Fence(t.warp, 1<<t.lane, t.how(o.order, o.scope)); return true }
			switch {
			case o.fence:
			case o.read && o.write && o.reg < 0:
				step = red(addr, uint64(o.value), o.order, o.scope)
			case o.read && o.write:
				add := atomAdd(0, addr, uint64(o.value), o.order, o.scope)
				step = func(t *thread) bool { goOn := add(t); got[o.reg] = int(t.r[0]); return goOn }
			case o.write:
				step = st(addr, uint64(o.value), o.order, o.scope)
			default:
				load := ld(0, addr, o.order, o.scope)
				step = func(t *thread) bool { goOn := load(t); got[o.reg] = int(t.r[0]); return goOn }
			}
			threads[o.thread].steps = append(threads[o.thread].steps, step)
		}
		return threads
	}}
	_, raced = l.run(seed, old)
	for at := range locations {
		got[p.regs+at] = int(l.last[at])
	}
	return fmt.Sprint(got), raced
}

// TestAxioms: a random program that has no race by the axioms is said to have none, and gives only what they allow.
func TestAxioms(t *testing.T) {
	free, racy, found, outcomes, seen := 0, 0, 0, 0, 0
	for i := range tier.Count(1000, 4000) {
		p := randomProgram(rand.New(rand.NewPCG(uint64(i), 7)))
		if p.executions() > 300 {
			continue
		}
		allowed, races := p.allowed()
		require.NotEmpty(t, allowed, "%v", p.ops)
		got, raced := map[string]bool{}, false
		for seed := range uint64(40) {
			outcome, race := p.run(seed, seed%2 == 1)
			raced = raced || race
			got[outcome] = true
			if !races {
				require.False(t, race, "program %d, seed %d: %v at %v has no race", i, seed, p.ops[first:], p.place)
				require.True(t, allowed[outcome], "program %d, seed %d: %v at %v gives %s, want one of %v", i, seed,
					p.ops[first:], p.place, outcome, allowed)
			}
		}
		if races {
			if racy++; raced {
				found++
			}
			continue
		}
		free++
		outcomes, seen = outcomes+len(allowed), seen+len(got)
	}
	t.Logf("%d programs without a race, %d of %d outcomes that are allowed were seen; of %d with one it was found in %d",
		free, seen, outcomes, racy, found)
	require.Greater(t, free, 50)
	require.Greater(t, found, racy/2)
}
