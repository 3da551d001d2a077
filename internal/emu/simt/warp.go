package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/decision"
)

// A warp is 32 threads of a block.
type warp struct {
	block  *block
	index  int
	regs   []alu.Lanes
	consts []alu.Lanes
	own    private
	live   uint32 // threads that have not ended

	groups  [32]group // of threads at the same instruction
	n       int       // number of groups
	current int       // the group that runs
	left    int       // instructions of the burst
	odd     bool      // see oddly
	strong  *inst     // its last strong access
	vain    int       // how often it made that one in a row
	polls   bool      // made a strong access since it was last asked
	asked   uint64    // World.ran at its last strong access
	calm    bool      // made none in this burst
	forced  bool      // it was chosen at random and runs on, whatever its rank

	far     place
	final   place  // at when the block before ended here
	access  poll   // the last strong access
	since   place  // at then
	again   bool   // it polls in vain
	lane    int    // of threads that go first by a decision, -1 if none
	from    place  // at when they began
	until   uint64 // at.count, how long they go first
	strayed uint64 // accesses that might have been
	lead    decision.Decision
	late    []lateLoad
	apart   []parting
	unknown unknown
	loads   uint64 // that might have been late
	stale   bool   // a group has polled in vain since one was chosen
	ranLane int    // the first thread of the group that was chosen last

	seat int // in World.ready, -1 when it is not
	last int // its turn in the rotation, see Config.Follow

	dst, src [8]*alu.Lanes // operands of the instruction
	addr     alu.Lanes     // scratch of accesses
	polled   poll
	copies   *[32]copies // of each thread, once one has begun any
	came     uint32      // threads that have arrived at the cluster's barrier,
	cameAt   *inst       // by an instruction,
	crossed  uint32      // and those for which it is complete, who have not waited yet
	shades   shades
}

// A group is the threads of a warp that are at the same instruction for the same reason.
type group struct {
	pc    int32
	mask  uint32
	wait  wait
	value uint32 // atBarrier: its id; atSync: the member mask
}

// A wait is why a group stands still.
type wait uint8

const (
	running   wait = iota
	atBarrier      // of the block
	atCluster      // at the barrier of the cluster
	atSync         // for the other threads of a member mask
)

// A status is the state of the current group after an instruction.
type status uint8

const (
	next   status = iota // on to the next instruction
	jumped               // it is where it has to go on
	pause                // on to the next instruction, but not now
	gone                 // it waits, has ended, or the grid was stopped
)

const (
	// longestParted is the most instructions that a group runs while others of its warp
	// could: it may be waiting for them.
	longestParted = 32
	// pollCost is how many instructions a strong access counts for in a burst: a warp
	// that polls gives way soon.
	pollCost = 32
	// Of parted threads, those at the lowest rank run, except one time in otherwise, when
	// any may; more often when they poll, as they may wait for each other.
	otherwise        = 128
	otherwisePolling = 3
)

// run executes at most n instructions.
func (w *warp) run(n int) {
	if w.calm {
		w.vain = 0
	}
	w.calm, w.again = true, false
	world, ins := w.block.grid.world, w.block.grid.Kernel.code.ins
	if !w.choose() {
		return
	}
	if w.n > 1 {
		n = min(n, longestParted)
	}
	for w.left = n; w.left > 0; w.left-- {
		g := &w.groups[w.current]
		in := &ins[g.pc]
		if w.odd && !w.oddly(in, g.mask) {
			return
		}
		mask := g.mask
		if in.guard != noSlot {
			mask &= w.guard(in)
		}
		if !in.helper {
			w.far.count++
			world.ran += uint64(bits.OnesCount32(g.mask))
			if world.cfg.Trace != nil {
				if w.trace(in, mask); w.seat < 0 {
					return
				}
			}
		}
		if in.alu != nil {
			if mask != 0 {
				in.alu(mask, w.operands(&w.dst, in.dst), w.operands(&w.src, in.src))
			}
			g.pc++
		} else if mask == 0 {
			g.pc++
		} else {
			switch in.exec(w, in, mask) {
			case next:
				g.pc++
			case pause:
				g.pc++
				return
			case gone:
				if w.seat < 0 || !w.choose() {
					return
				}
				continue
			}
		}
		if w.n > 1 {
			w.join()
		}
	}
}

// guard is the mask of the threads whose predicate holds.
func (w *warp) guard(in *inst) uint32 {
	p := w.slot(in.guard)
	var m uint32
	for i := 0; i < 32; i += 4 {
		m |= uint32(p[i]&1|p[i+1]&1<<1|p[i+2]&1<<2|p[i+3]&1<<3) << i // threads elsewhere may hold anything here
	}
	if in.negate {
		return ^m
	}
	return m
}

// slot is the register or constant of an operand.
func (w *warp) slot(s int32) *alu.Lanes {
	if s < 0 {
		return &w.consts[^s]
	}
	return &w.regs[s]
}

// operands looks up the slots of an instruction.
func (w *warp) operands(to *[8]*alu.Lanes, slots []int32) []*alu.Lanes {
	for i, s := range slots {
		to[i&7] = w.slot(s)
	}
	return to[:len(slots)]
}

// choose picks the group that runs: the one of the lowest rank, so that parted threads
// join soon, or now and then any, so that all make progress. If none can run, the warp
// is no longer ready and choose returns false.
func (w *warp) choose() bool {
	w.forced = false
	if w.lane >= 0 && !w.block.grid.world.cfg.Book.Follows() {
		w.parted()
	}
	if w.n == 1 && w.groups[0].wait == running {
		w.current = 0
		return true
	}
	var can [32]int
	n, best := 0, 0
	for i := range w.n {
		if w.groups[i].wait == running {
			can[n] = i
			if w.rank(i) < w.rank(can[best]) {
				best = n
			}
			n++
		}
	}
	if n == 0 {
		w.block.rest(w)
		return false
	}
	w.current = can[best]
	if n == 1 {
		return true
	}
	often := otherwise
	if w.polls {
		often, w.polls = otherwisePolling, false
	}
	world := w.block.grid.world
	if world.cfg.Book.Follows() {
		w.planGroup(can[:n], can[best])
	} else if world.random.below(often) == 0 {
		w.current, w.forced = can[world.random.below(n)], true
		if world.cfg.Book.Records() {
			w.lane, w.from, w.stale = bits.TrailingZeros32(w.groups[w.current].mask), w.far, false
		}
	} else if w.stale && world.cfg.Book.Records() {
		w.unparted()
	}
	w.ranLane = bits.TrailingZeros32(w.groups[w.current].mask)
	return true
}

// giveWay notes a strong access of an address, and what a thread found there: it may be waiting for another.
func (w *warp) giveWay(in *inst, addr, value uint64) {
	if now := (poll{in: in, addr: addr, value: value}); now == w.access {
		w.since.round++
		w.far, w.again, w.stale = w.since, true, true
		if w.block.grid.world.cfg.Book != nil {
			w.left = 0 // others may change what it polls, at every poll
		}
	} else {
		w.far.round = 0
		w.access, w.since = now, w.far
	}
	w.left -= pollCost
	w.polls, w.calm = true, false
	w.asked = w.block.grid.world.ran
	if in != w.strong {
		w.strong, w.vain = in, 0
	}
	w.vain++
}

func (w *warp) rank(i int) int32 { return w.block.grid.Kernel.code.ins[w.groups[i].pc].rank }

// join merges the current group with one at the same instruction, and lets the
// group of the lowest rank go on.
func (w *warp) join() {
	c := &w.groups[w.current]
	for i := 0; i < w.n; i++ {
		if g := &w.groups[i]; i != w.current && g.wait == running && g.pc == c.pc {
			c.mask |= g.mask
			w.remove(i)
			c = &w.groups[w.current]
			i--
		}
	}
	if w.forced {
		return
	}
	for i := range w.n {
		if w.groups[i].wait == running && w.rank(i) < w.rank(w.current) {
			w.current = i
		}
	}
}

// part sends threads of the current group elsewhere.
func (w *warp) part(mask uint32, pc int32) {
	c := &w.groups[w.current]
	c.mask &^= mask
	here := c.pc
	c.pc = -1 // about to move: no group may join it here
	w.add(group{pc: pc, mask: mask})
	c.pc = here
}

// add adds a group, to one at the same instruction if there is.
func (w *warp) add(g group) {
	for i := range w.n {
		if o := &w.groups[i]; o.pc == g.pc && o.wait == g.wait && o.value == g.value {
			o.mask |= g.mask
			return
		}
	}
	w.groups[w.n] = g
	w.n++
}

// remove drops a group; the last one takes its index.
func (w *warp) remove(i int) {
	w.n--
	w.groups[i] = w.groups[w.n]
	if w.current == w.n {
		w.current = i
	}
}

// hold makes threads of the current group wait at their instruction. The others of
// the group go on with the next.
func (w *warp) hold(mask uint32, why wait, value uint32) {
	g := w.groups[w.current]
	w.remove(w.current)
	w.add(group{pc: g.pc, mask: mask, wait: why, value: value})
	if rest := g.mask &^ mask; rest != 0 {
		w.add(group{pc: g.pc + 1, mask: rest})
	}
}

// waitsAt is the threads that wait for a reason.
func (w *warp) waitsAt(why wait) (mask uint32) {
	for i := range w.n {
		if g := &w.groups[i]; g.wait == why {
			mask |= g.mask
		}
	}
	return mask
}

// release lets the groups that wait for a reason go on after their instruction.
func (w *warp) release(why wait, value uint32) {
	for i := range w.n {
		if g := &w.groups[i]; g.wait == why && g.value == value {
			g.wait, g.value = running, 0
			g.pc++
		}
	}
	w.block.wake(w)
}

func (w *warp) trace(in *inst, mask uint32) {
	g := w.block.grid
	g.world.cfg.Trace(Event{Grid: g, Device: g.Device, Kernel: g.Kernel.Name, Block: w.block.index, Warp: w.index,
		Mask: mask, In: in.ptx, warp: w, inst: in})
}
