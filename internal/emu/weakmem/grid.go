package weakmem

import "slices"

// A Grid is a kernel that runs.
type Grid struct {
	For func() string // the program's call of a library whose kernel it is; nil: it is the program's own

	memory *Memory
	device int
	launch int // of its device, from 0
	kernel string
	before *vector  // the clock before any block begins
	peers  int      // of Log.Peers, known when it began
	seen   *vector  // the clocks of its blocks when they ended
	agents []uint32 // its blocks

	helpers []agents // of its blocks' copies, in order
}

// Begin starts a kernel on a device; it happens after the given Clock.
func (m *Memory) Begin(device int, kernel string, after Clock) *Grid {
	m.meetOthers()
	after.v = join(after.v, m.untilNow())
	g := &Grid{memory: m, device: device, launch: m.begun[device], kernel: kernel, before: after.v, seen: after.v}
	m.begun[device]++
	g.peers = len(m.others)
	return g
}

// Call is what For says, or empty.
func (g *Grid) Call() string {
	if g == nil || g.For == nil {
		return ""
	}
	return g.For()
}

// End is called when all blocks have ended, and gives what happened before now.
func (g *Grid) End() Clock {
	g.memory.device(g.device).moveUp()
	ended := endedVector(g.agents)
	ended.ended = joinEnded(ended.ended, g.helpers)
	all := join(ended, g.seen)
	if all.fenced != nil { // which is about shared memory
		all = &vector{ended: all.ended, live: all.live}
	}
	return Clock{all}
}

// A Block is a block of threads that runs. Each call is for the lanes of a mask of one
// warp; a thread's number in the block is 32 × warp + lane.
type Block struct {
	memory *Memory
	grid   *Grid
	origin origin
	shared *Allocation
	warps  []warp
	buffer buffer
	clock  *vector              // known to all threads
	epoch  uint32               // counts barriers of all threads
	access map[*Allocation]bool // answers of Config.Access
	visits                      // of other blocks of its cluster

	pools [4]pool
}

// A warp is the state of 32 threads.
type warp struct {
	buffer  buffer
	time    uint32 // counts releases of the lanes
	synced  uint32 // accesses of the lanes before this time are known to all of them
	live    uint32 // lanes that have not ended
	stored  uint64 // counts stores, and atomic operations that may be late
	strongs uint32 // counts stores and atomic operations
	copies  int    // counts asynchronous copies
	lanes   *[32]lane

	view        view
	allocations [2]*Allocation // found last
	changed     int            // spanTable.changed then
	recent      [8]uint32
	compact     int // history.compacted when recent was right
}

// A lane is the state of a thread: the clocks that it knows beyond its block's, and
// those that it has released.
type lane struct {
	clock    *vector              // nil: as its block
	observes bool                 // anything:
	observed clocks               // by strong loads, by the scope that holds writer and reader; a fence makes it known
	fenced   [System + 1]moment   // the last fence of at least the scope; strong stores release the clock of that moment
	handing  [System + 1]*release // by strong stores of the scope since then, when first asked for
	seen     *places              // what was observed at each location: an acquire there makes it known
	released *places              // at each location, since the last fence: strong stores there release it again
}

// A moment is a lane's clock at some time, which it may release. The zero moment is
// none.
type moment struct {
	known        *vector
	synced, time uint32
}

// Block starts a block with shared bytes of shared memory, unwritten, of which it may access the parts, or all.
func (g *Grid) Block(index [3]int, dim [3]int, shared int, parts ...Part) *Block {
	m := g.memory
	b := &Block{memory: m, grid: g, clock: g.before}
	b.origin = origin{agent: m.agent(), grid: g, index: index, dim: dim}
	b.buffer = buffer{memory: m, up: m.device(g.device), limit: blockPending, beyond: GPU}
	threads := dim[0] * dim[1] * dim[2]
	b.warps = make([]warp, (threads+31)/32)
	for i := range b.warps {
		w := &b.warps[i]
		w.buffer = buffer{memory: m, up: &b.buffer, limit: warpPending}
		w.upToDate(m)
		w.live = ^uint32(0) >> (32 - min(32, threads-32*i))
	}
	b.shared = &Allocation{Data: make([]byte, shared), Device: g.device, Name: "shared memory",
		memory: &physical{bytes: uint64(shared)}, base: firstShared + uint64(b.origin.agent)*mostShared, block: b,
		parts: parts}
	if !m.config.Plain {
		b.shared.Written = make([]uint64, (shared+63)/64)
		m.history.blocks[b] = struct{}{}
	}
	g.agents = append(g.agents, b.origin.agent)
	return b
}

// Zero makes shared memory from off on count as written: hardware has it in use before the block.
func (b *Block) Zero(off int) { b.shared.setWritten(uint64(off), uint64(len(b.shared.Data)-off)) }

// Exit is called when threads end. Barriers of all threads and SyncWarp do not
// wait for them, but order their accesses.
func (b *Block) Exit(warp int, mask uint32) {
	known := b.known(warp, mask)
	b.grid.seen = join(b.grid.seen, known.without(b.origin.agent))
	b.warps[warp].live &^= mask
	if b.origin.cluster != nil {
		b.left = join(b.left, known)
	}
}

// End makes the block's stores visible. Nothing may be called after but Outlasted.
func (b *Block) End() {
	for i := range b.warps {
		b.warps[i].buffer.drainAll()
		b.Exit(i, b.warps[i].live)
	}
	b.grid.seen = join(b.grid.seen, b.clock.without(b.origin.agent))
	for up := &b.buffer; up != nil; up = up.up {
		up.drainAll()
	}
	b.ended = true
	delete(b.memory.history.blocks, b)
	delete(b.memory.sc.block, b.origin.agent)
	if c := b.origin.cluster; c != nil {
		c.leave(b.memory)
	}
}

// Barrier is called when a barrier is complete. threads has the mask of each
// warp that took part. A barrier of all threads that have not ended is cheap.
// Threads that arrived without waiting (bar.arrive) count as if they had waited.
func (b *Block) Barrier(threads []uint32) {
	if b.memory.config.Plain {
		return
	}
	whole := len(threads) == len(b.warps)
	var known *vector
	for i, mask := range threads {
		whole = whole && mask&b.warps[i].live == b.warps[i].live
		known = join(known, b.known(i, mask))
		b.warps[i].buffer.moveUp()
	}
	for i := range threads {
		b.warps[i].upToDate(b.memory)
	}
	if !whole {
		b.meet(threads, known)
		return
	}
	b.epoch++
	b.clock = join(join(b.clock, known).without(b.origin.agent),
		&vector{live: []entry{{key(b.origin.agent, wholeBlock), b.epoch}}})
	for i := range b.warps {
		if lanes := b.warps[i].lanes; lanes != nil {
			for j := range lanes {
				lanes[j].clock = nil
			}
		}
	}
}

// SyncWarp orders the earlier accesses of the lanes of a warp: bar.warp.sync. Votes and
// shuffles order nothing.
func (b *Block) SyncWarp(warp int, mask uint32) {
	if b.memory.config.Plain {
		return
	}
	w := &b.warps[warp]
	known := b.known(warp, mask)
	w.upToDate(b.memory)
	if mask&w.live != w.live {
		threads := make([]uint32, warp+1)
		threads[warp] = mask
		b.meet(threads, known)
		return
	}
	w.time++
	w.synced = w.time
	if known == nil {
		return
	}
	known = join(b.clock, known)
	for i := range w.lanes {
		w.lanes[i].clock = known
	}
}

// known is the clock that lanes know beyond their block's.
func (b *Block) known(warp int, mask uint32) (v *vector) {
	lanes := b.warps[warp].lanes
	if lanes == nil {
		return nil
	}
	for i := range lanes {
		if mask>>i&1 != 0 {
			v = join(v, lanes[i].clock)
		}
	}
	return v
}

// meet makes each of the threads know the accesses of all of them, and known.
func (b *Block) meet(threads []uint32, known *vector) {
	all := &vector{}
	for i, mask := range threads {
		w := &b.warps[i]
		if mask == 0 {
			continue
		}
		w.time++
		if mask&w.live == w.live {
			w.synced = w.time
		}
		if w.synced > 0 {
			all.live = append(all.live, entry{key(b.origin.agent, firstWarp+i), w.synced})
		}
		if w.synced == w.time {
			continue
		}
		for l := range 32 {
			if mask>>l&1 != 0 {
				all.live = append(all.live, entry{key(b.origin.agent, firstLane+32*i+l), w.time})
			}
		}
	}
	slices.SortFunc(all.live, func(x, y entry) int { return int(x.key) - int(y.key) })
	all = join(all, join(b.clock, known))
	for i, mask := range threads {
		for l := range 32 {
			if mask>>l&1 != 0 {
				b.lane(i, l).clock = all
			}
		}
	}
}

// lane is the state of a lane, to be changed.
func (b *Block) lane(warp, l int) *lane {
	w := &b.warps[warp]
	if w.lanes == nil {
		w.lanes = new([32]lane)
	}
	return &w.lanes[l]
}

// clockOf is the clock of a lane.
func (b *Block) clockOf(w *warp, l int) *vector {
	if w.lanes == nil || w.lanes[l].clock == nil {
		return b.clock
	}
	return w.lanes[l].clock
}
