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
// of a few loads, stores, fences, barriers and branches. All executions are enumerated: which store each load reads
// from, in which order the stores to a location lie, in which order fence.sc are. Those that break no axiom are what a
// program may do.

// An op is a load, a store, an atomic addition, a fence or a barrier of a thread.
type op struct {
	thread  int
	read    bool // an atomic operation reads and writes
	write   bool
	fence   bool
	barrier bool // of all threads that have one
	at      int  // location
	value   int  // that is stored or added
	reg     int  // that gets what is read; -1: none, as of red
	order   Order
	scope   Scope
	branch  bool // the thread goes on with this operation only if register of holds is
	of, is  int
}

func (o op) String() string {
	if o.branch {
		on := o
		on.branch = false
		return fmt.Sprintf("if r%d == %d: %v", o.of, o.is, on)
	}
	if o.barrier {
		return "bar.sync"
	}
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
// one's cluster, a third warp of the first block.
var spots = []thread{{cluster: 1}, {warp: 1, cluster: 1}, {block: 1}, {block: 1, device: 1}, {block: 2, cluster: 1},
	{warp: 2, cluster: 1}}

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

	branches []op // those of ops that are
	shared   bool // the locations are in the block's shared memory
}

const locations = 3

// A rule of the axioms may be left out, to see that it is missed.
type rule int

const (
	allRules rule = iota
	releaseAlone
	releaseThenStore
	fenceReleases
	acquireAlone
	loadThenAcquire
	fenceAcquires
	throughAtomics
	barriers
	fencesInOrder
	observation
	transitive
	anyScope
	patternScopes
	rules
)

func (r rule) String() string {
	return [...]string{"all rules", "a release", "a release and a strong store of its location behind it",
		"a fence and a strong store", "an acquire", "a strong load and an acquire of its location behind it",
		"a strong load and a fence", "observation through atomic operations", "barriers", "the order of fence.sc",
		"causality by observation", "causality is transitive", "scopes of accesses", "scopes of patterns"}[r]
}

// first is how many operations write the first values, before all threads.
const first = locations

func (p *program) strong(rule rule, a, b int) bool { // morally strong
	x, y := &p.ops[a], &p.ops[b]
	if a < first || b < first || x.thread == y.thread {
		return a != b
	}
	need := distance(p.place[x.thread], p.place[y.thread])
	return x.order != Weak && y.order != Weak && (rule == anyScope || x.scope >= need && y.scope >= need) &&
		(x.fence || y.fence || x.at == y.at)
}

// allowed are the outcomes that the axioms allow, and whether some execution has a race. Rule is left out.
func (p *program) allowed(rule rule) (outcomes map[string]bool, races bool) {
	outcomes = map[string]bool{}
	stops := make([]bool, len(p.place))
	var choose func(t int)
	choose = func(t int) {
		if t == len(stops) {
			races = p.cut(stops).enumerate(rule, stops, outcomes) || races
			return
		}
		choose(t + 1)
		if slices.ContainsFunc(p.ops, func(o op) bool { return o.branch && o.thread == t }) {
			stops[t] = true
			choose(t + 1)
			stops[t] = false
		}
	}
	choose(0)
	return outcomes, races
}

// cut is the program of the operations that are executed where some threads stop at their branches.
func (p *program) cut(stops []bool) *program {
	q := &program{place: p.place, regs: p.regs, branches: p.branches}
	ended := make([]bool, len(stops))
	for i, o := range p.ops {
		if i >= first && o.branch && stops[o.thread] {
			ended[o.thread] = true
		}
		if i < first || !ended[o.thread] {
			q.ops = append(q.ops, o)
		}
	}
	return q
}

// enumerate adds the outcomes of executions in which the branches go as given, and reports whether one has a race.
func (p *program) enumerate(rule rule, stops []bool, outcomes map[string]bool) (races bool) {
	n, q := len(p.ops), p.orders(rule)
	var loads, fences []int
	stores := make([][]int, locations)
	for a, x := range p.ops {
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
		ok, race := p.holds(rule, q, from, loads, coherence, sc)
		if !ok {
			return
		}
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
		for _, o := range p.branches {
			if (got[o.of] == o.is) == stops[o.thread] {
				return
			}
		}
		races = races || race
		outcomes[fmt.Sprint(got)] = true
	}
	for _, a := range permutations(stores[0]) {
		for _, b := range permutations(stores[1]) {
			for _, c := range permutations(stores[2]) {
				for _, sc := range permutations(fences) {
					choose(0, [][]int{a, b, c}, sc)
				}
			}
		}
	}
	return races
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

// orders are what holds between operations in all executions.
type orders struct {
	order    relation // of the program
	same     relation // likewise, of a location
	releases relation // from the first operation of a release pattern to its strong store
	acquires relation // from the strong load of an acquire pattern to its last operation
	met      relation // by barriers
	depends  relation // from loads to stores that they decide about
}

func (p *program) orders(rule rule) *orders {
	n := len(p.ops)
	none := func() relation { return make(relation, n) }
	q := &orders{none(), none(), none(), none(), none(), none()}
	branch := make([]int, len(p.place))
	for a, x := range p.ops {
		if x.branch {
			branch[x.thread] = a
		}
		for b := a + 1; b < n; b++ {
			if a < first && b >= first || a >= first && x.thread == p.ops[b].thread {
				q.order.add(a, b)
			}
		}
	}
	for a := first; a < n; a++ {
		for b := first; b < n; b++ {
			x, y := &p.ops[a], &p.ops[b]
			if q.order.has(a, b) && p.overlap(a, b) {
				q.same.add(a, b)
			}
			if y.write && y.order != Weak {
				release := x.write && x.order >= Release
				if rule != fenceReleases && x.fence && q.order.has(a, b) || rule != releaseAlone && release && a == b ||
					rule != releaseThenStore && release && q.same.has(a, b) {
					q.releases.add(a, b)
				}
			}
			if x.read && x.order != Weak {
				acquire := y.read && (y.order == Acquire || y.order == AcqRel)
				if rule != fenceAcquires && y.fence && q.order.has(a, b) || rule != acquireAlone && acquire && a == b ||
					rule != loadThenAcquire && acquire && q.same.has(a, b) {
					q.acquires.add(a, b)
				}
			}
			if at := branch[max(x.thread, 0)]; at > 0 && x.thread == y.thread && x.read && x.reg == p.ops[at].of && y.write &&
				b >= at {
				q.depends.add(a, b)
			}
		}
	}
	for a, x := range p.ops {
		for b, y := range p.ops {
			if rule == barriers || !x.barrier || !y.barrier || x.thread == y.thread {
				continue
			}
			for before := first; before < a; before++ {
				if q.order.has(before, a) {
					q.met[before] |= q.order[b]
				}
			}
		}
	}
	return q
}

// holds reports whether an execution breaks no axiom, and whether two operations race in it.
func (p *program) holds(rule rule, q *orders, from, loads []int, coherence [][]int, sc []int) (ok, race bool) {
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
			if p.strong(rule, sc[i], later) {
				fenced.add(sc[i], later)
			}
		}
	}
	strongly := func(r relation) relation {
		s := none()
		for a := range r {
			for m := r[a]; m != 0; m &= m - 1 {
				if b := bits.TrailingZeros32(m); p.strong(rule, a, b) {
					s.add(a, b)
				}
			}
		}
		return s
	}
	observed := strongly(rf)
	if rule != throughAtomics {
		observed = observed.closed()
	}
	synchronizes := q.releases.then(observed).then(q.acquires)
	if rule != patternScopes {
		synchronizes = strongly(synchronizes)
	}
	base := union(q.order, synchronizes, q.met)
	if rule != fencesInOrder {
		base = union(base, fenced)
	}
	if rule != transitive {
		base = base.closed()
	}
	causality := base
	if rule != observation {
		causality = union(base, observed.then(base))
	}
	if union(rf, q.depends).closed().reflexive() { // No-Thin-Air
		return false, false
	}

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
		union(strongly(union(rf, co, fr)), q.same).closed().reflexive(), // a location is sequentially consistent
		union(rf, fr).then(causality).reflexive():                       // Causality
		return false, false
	}
	for a := first; a < n; a++ {
		for b := first; b < n; b++ {
			if a != b && p.overlap(a, b) && (p.ops[a].write || p.ops[b].write) && !p.strong(rule, a, b) &&
				!causality.has(a, b) && !causality.has(b, a) {
				race = true
			}
		}
	}
	return true, race
}

func (p *program) overlap(a, b int) bool {
	x, y := &p.ops[a], &p.ops[b]
	return a != b && (x.read || x.write) && (y.read || y.write) && x.at == y.at
}

// randomProgram has two or three threads of up to three operations. In every other program all are strong and of the
// widest scope, so that nothing races; every other one has the shape of those that papers give names to.
func randomProgram(rnd *rand.Rand) *program {
	p := &program{}
	for at := range locations {
		p.ops = append(p.ops, op{thread: -1, write: true, at: at})
	}
	value, wide, classic := 0, rnd.IntN(2) == 0, rnd.IntN(2) == 0
	const locations = 2
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

// randomMessage has a thread store data and a flag, and another one look at the flag, branch on what it saw, and use
// the data; maybe with a third one between them. The forms are those of release and acquire patterns, and some that
// are none.
func randomMessage(rnd *rand.Rand) *program {
	p := &program{}
	for at := range locations {
		p.ops = append(p.ops, op{thread: -1, write: true, at: at})
	}
	const data, flag, other = 0, 1, 2
	usual := []Scope{System, System, GPU, CTA}[rnd.IntN(4)]
	handed := true // what is done to the flag is released with it
	wide := false
	scope := func() Scope {
		if rnd.IntN(8) == 0 && !wide {
			handed = false
			return Scope(rnd.IntN(4))
		}
		return usual
	}
	place := func() {
		at := rnd.IntN(len(spots))
		for slices.Contains(p.place, at) {
			at = rnd.IntN(len(spots))
		}
		if p.shared || usual == CTA && len(p.place) < 2 {
			at = []int{0, 1, 5}[len(p.place)]
		}
		p.place = append(p.place, at)
	}
	value := 0
	add := func(o op) {
		o.thread = len(p.place) - 1
		if o.order != Weak {
			o.scope = scope()
		}
		if o.write {
			value++
			if o.value = value; o.read {
				o.reg, o.value = -1, 10*value
			}
		}
		if o.branch {
			p.branches = append(p.branches, o)
		}
		p.ops = append(p.ops, o)
	}
	load := func(at int, order Order) int {
		add(op{read: true, at: at, order: order, reg: p.regs})
		p.regs++
		return p.regs - 1
	}
	fence := func() { add(op{fence: true, order: []Order{AcqRel, AcqRel, SeqCst}[rnd.IntN(3)]}) }
	// send releases by a location; what it may hold then is in values.
	var values []int
	store := func(at int, order Order) {
		if add(op{write: true, at: at, order: order}); at == flag {
			values = []int{value}
		}
	}
	red := func(at int, order Order) {
		if add(op{read: true, write: true, at: at, order: order}); at == flag {
			values = append(values, 10*value)
			if len(values) > 1 {
				values = []int{values[0] + 10*value}
			}
		}
	}
	send := func() {
		values = nil
		form := rnd.IntN(9)
		handed = handed && slices.Contains([]int{0, 1, 4, 5}, form)
		switch form {
		case 0:
			store(flag, Release)
		case 1:
			fence()
			store(flag, Relaxed)
		case 2:
			store(flag, Release)
			store(flag, Relaxed)
		case 3:
			red(flag, Release)
			store(flag, Relaxed)
		case 4:
			red(flag, Release)
		case 5:
			fence()
			red(flag, Relaxed)
		case 6:
			store(flag, Release)
			red(flag, Relaxed)
		case 7: // not a pattern
			store(other, Release)
			store(flag, Relaxed)
		default:
			store(flag, Relaxed)
		}
	}
	receive := func(form int) (reg int) {
		switch form {
		case 0, 1:
			return load(flag, Acquire)
		case 2:
			reg = load(flag, Relaxed)
			fence()
		case 3, 7:
			reg = load(flag, Relaxed)
			load(flag, Acquire)
		case 4:
			return load(flag, []Order{Relaxed, Acquire}[rnd.IntN(2)])
		case 5: // not a pattern
			reg = load(flag, Relaxed)
			load(other, Acquire)
		default:
			add(op{read: true, write: true, at: flag, order: Acquire})
			p.ops[len(p.ops)-1].reg, reg = p.regs, p.regs
			p.regs++
		}
		return reg
	}
	use := func(from, is int, how Order) {
		o := op{branch: true, of: from, is: is, write: rnd.IntN(3) == 0, at: data, order: how, reg: p.regs}
		if handed && rnd.IntN(4) == 0 {
			o.at, o.order = flag, Weak // which it has observed
		}
		add(o)
		if last := &p.ops[len(p.ops)-1]; !last.write {
			last.read = true
			p.regs++
			p.branches[len(p.branches)-1] = *last
		}
	}
	p.shared = rnd.IntN(6) == 0
	if p.shared {
		usual = CTA
	}
	if rnd.IntN(8) == 0 { // each says that it comes, and uses the data if the other has not
		for i := range 2 {
			place()
			add(op{write: true, at: 1 + i, order: Relaxed})
			add(op{fence: true, order: []Order{AcqRel, SeqCst, SeqCst, SeqCst}[rnd.IntN(4)]})
			use(load(2-i, Relaxed), 0, Weak)
		}
		return p
	}
	place()
	how := []Order{Weak, Weak, Relaxed}[rnd.IntN(3)] // of accesses to the data
	add(op{write: true, at: data, order: how})
	middle := rnd.IntN(5)
	if middle == 3 { // what one thread stores another one sends behind a barrier
		at := rnd.IntN(2)
		p.place[0] = at
		add(op{barrier: true})
		p.place = append(p.place, 1-at)
		add(op{barrier: true})
		load(data, how)
	}
	send()
	sent := values
	switch middle {
	case 0: // the flag goes through an atomic operation, or a load and a store
		place()
		if rnd.IntN(2) > 0 {
			red(flag, Relaxed)
		} else {
			handed = false
			reg := load(flag, Relaxed)
			add(op{branch: true, of: reg, is: sent[0], write: true, at: flag, order: Relaxed})
			values = []int{value}
		}
	case 1: // another thread looks at the flag, and sends on
		place()
		reg := receive(rnd.IntN(8))
		n := len(p.ops)
		wide = !handed // who has observed a store that releases nothing does not come after it here
		send()
		handed = false // the first store was observed by another thread
		p.ops[n].branch, p.ops[n].of, p.ops[n].is = true, reg, sent[0]
		p.branches = append(p.branches, p.ops[n])
	}
	place()
	form := rnd.IntN(8)
	if middle == 0 && rnd.IntN(2) == 0 {
		form = 3 // the second load may see what came after the release
	}
	use(receive(form), [][]int{sent, values}[rnd.IntN(2)][0], how)
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
	n := factorial[stores[0]] * factorial[stores[1]] * factorial[stores[2]] * factorial[fences]
	for _, o := range p.ops[first:] {
		if o.read {
			n *= 1 + stores[o.at]
		}
	}
	return n
}

// A slip is a rule that the memory breaks when the operations are carried out otherwise than they are written.
type slip int

const (
	noSlip slip = iota
	plainFences
	noFences
	plainReleases
	splitAtomics
	pastFences
	pastOwn
	slips
)

func (s slip) String() string {
	return [...]string{"none", "fence.sc as fence.acq_rel", "no fences", "releases as relaxed stores",
		"atomic operations as a load and a store", "loads behind fences and acquires carried out before them",
		"loads carried out after later accesses of the location"}[s]
}

// slipped is the operations, as memory with a fault would take them.
func (p *program) slipped(s slip) (ops []op) {
	for _, o := range p.ops[first:] {
		switch {
		case s == plainFences && o.fence:
			o.order = AcqRel
		case s == noFences && o.fence:
			continue
		case s == plainReleases && o.write && o.order == Release:
			o.order = Relaxed
		}
		ops = append(ops, o)
	}
	return ops
}

// late is the operations in an order in which they may be carried out: some loads after what follows them.
func late(ops []op, s slip, rnd *rand.Rand) []op {
	for i := len(ops) - 1; i >= 0; i-- {
		load := ops[i]
		if !load.read || load.write || load.order != Relaxed && s != pastFences || load.branch || rnd.IntN(2) == 0 {
			continue
		}
		for k := i + 1; k < len(ops); k++ {
			o := ops[k]
			access, elsewhere := !o.fence && !o.barrier && !o.branch, o.at != load.at
			passes := access && o.read != o.write && (How{Order: o.order}).Passes() && elsewhere ||
				s == pastFences && !o.branch && elsewhere || s == pastOwn && access
			if o.thread == load.thread && (!passes || rnd.IntN(4) == 0) {
				break
			}
			ops[k-1], ops[k] = o, load
		}
	}
	return ops
}

// run carries the program out under a seed.
func (p *program) run(seed uint64, s slip) (outcome string, raced bool) {
	ops := p.slipped(s)
	if seed%4 > 1 {
		ops = late(ops, s, rand.New(rand.NewPCG(seed, 2)))
	}
	got := make([]int, p.regs+locations)
	waiting, waits := 0, 0 // threads with a barrier, and those that have come to it
	for _, o := range ops {
		waits += b2i(o.barrier)
	}
	l := litmus{shared: p.shared, weak: func([]*thread) bool { return false }, threads: func() []*thread {
		threads := make([]*thread, len(p.place))
		masks := make([]uint32, 3)
		for t := range threads {
			at := spots[p.place[t]]
			threads[t] = &at
		}
		for _, o := range ops {
			addr := []uint64{x, y, ready}[o.at]
			step := func(t *thread) bool { t.on.Fence(t.warp, 1<<t.lane, t.how(o.order, o.scope)); return true }
			switch {
			case o.barrier:
				came := false
				step = func(t *thread) bool {
					if masks[t.warp] |= 1 << t.lane; !came {
						came, waiting = true, waiting+1
						if waiting == waits {
							t.on.Barrier(masks)
						}
					}
					t.again = waiting < waits
					return true
				}
			case o.fence:
			case o.read && o.write && s == splitAtomics:
				load, reg := ld(0, addr, Relaxed, o.scope), max(o.reg, 0)
				threads[o.thread].steps = append(threads[o.thread].steps, func(t *thread) bool {
					goOn := load(t)
					if o.reg >= 0 {
						got[reg] = int(t.r[0])
					}
					return goOn
				})
				step = func(t *thread) bool { return st(addr, t.r[0]+uint64(o.value), Relaxed, o.scope)(t) }
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
			if goOn := step; o.branch {
				step = func(t *thread) bool { return got[o.of] == o.is && goOn(t) }
			}
			threads[o.thread].steps = append(threads[o.thread].steps, step)
		}
		return threads
	}}
	_, raced = l.run(seed, seed%2 == 1)
	for at := range locations {
		got[p.regs+at] = int(l.last[at])
	}
	return fmt.Sprint(got), raced
}

// ran is what a program did under all seeds.
type ran struct {
	outcomes map[string]bool
	raced    bool
}

// A program runs under so many seeds, and, as long as its race has not come, under more.
const axiomSeeds, raceSeeds = 40, 4000

func (p *program) runAll(races bool, s slip) ran {
	r := ran{outcomes: map[string]bool{}}
	for seed := uint64(0); seed < axiomSeeds || races && !r.raced && seed < raceSeeds; seed++ {
		outcome, race := p.run(seed, s)
		r.outcomes[outcome], r.raced = true, r.raced || race
	}
	return r
}

// differs says how what a program did differs from what the axioms allow, or nothing.
func (r *ran) differs(allowed map[string]bool, races bool) string {
	switch {
	case races && !r.raced:
		return "has a race that is not reported"
	case races:
		return ""
	case r.raced:
		return "has no race, and one is reported"
	}
	for outcome := range r.outcomes {
		if !allowed[outcome] {
			return "gives " + outcome
		}
	}
	return ""
}

func (p *program) String() string {
	text := ""
	for t, at := range p.place {
		text += fmt.Sprintf("\nthread %d at %+v, shared %v:", t, spots[at], p.shared)
		for _, o := range p.ops[first:] {
			if o.thread == t {
				text += fmt.Sprintf(" %v;", o)
			}
		}
	}
	return text
}

// TestAxioms: a random program that has no race by the axioms is said to have none, and gives only what they allow; one
// that has a race is said to have one. Axioms that lack a rule disagree with that, and so does memory that breaks one.
func TestAxioms(t *testing.T) {
	free, outcomes, seen := 0, 0, 0
	var programs []*program
	var did []ran
	var races []bool
	for i := range tier.Count(3000, 10000) {
		rnd := rand.New(rand.NewPCG(uint64(i), 7))
		p := randomProgram(rnd)
		if i%2 == 1 {
			p = randomMessage(rnd)
		}
		if p.executions() > 300 {
			continue
		}
		allowed, race := p.allowed(allRules)
		require.NotEmpty(t, allowed, "%v", p)
		r := p.runAll(race, noSlip)
		if d := r.differs(allowed, race); d != "" {
			t.Errorf("%v\n%s, where %v are allowed", p, d, allowed)
		}
		programs, did, races = append(programs, p), append(did, r), append(races, race)
		if !race {
			free++
			outcomes, seen = outcomes+len(allowed), seen+len(r.outcomes)
		}
	}
	t.Logf("%d programs without a race, %d of %d outcomes that are allowed were seen; %d with one", free, seen, outcomes,
		len(programs)-free)
	require.Greater(t, free, 50)
	for rule := allRules + 1; rule < rules; rule++ {
		require.True(t, slices.ContainsFunc(programs, func(p *program) bool {
			return did[slices.Index(programs, p)].differs(p.allowed(rule)) != ""
		}), "the axioms without this rule agree with what is seen: %v", rule)
	}
	for s := noSlip + 1; s < slips; s++ {
		require.True(t, slices.ContainsFunc(programs, func(p *program) bool {
			if races[slices.Index(programs, p)] {
				return false
			}
			r := p.runAll(false, s)
			r.raced = false
			return r.differs(p.allowed(allRules)) != ""
		}), "memory that breaks this rule agrees with the axioms: %v", s)
	}
}
