package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A block is a block of threads on a multiprocessor.
type block struct {
	grid  *Grid
	index [3]int
	mem   *weakmem.Block
	sm    *sm
	seat  int // in Grid.here
	rank  int // in the cluster
	warps []*warp
	live  int // threads that have not ended
	ready int // warps that can run
	bars  [16]barrier

	mbarriers map[uint64]*mbarrier // by their offsets in shared memory
	copies    []*transfer          // that use its shared memory
	cluster   *cluster             // nil where no thread can tell
}

// newBlock makes a block, or takes one that ended.
func newBlock(g *Grid, number int, s *sm, c *cluster) *block {
	var b *block
	if n := len(g.spare); n > 0 {
		b, g.spare = g.spare[n-1], g.spare[:n-1]
	} else {
		b = &block{grid: g}
		for i := 0; i < g.threads(); i += 32 {
			b.warps = append(b.warps, newWarp(b, i/32))
		}
		for i := range b.bars {
			b.bars[i].masks = make([]uint32, len(b.warps))
		}
	}
	b.copies = nil
	b.index, b.sm, b.live = g.index(number), s, g.threads()
	if !g.Kernel.code.reserves {
		b.mem = g.mem.Block(b.index, g.Block, g.room(), g.parts()...)
	} else {
		b.mem = g.mem.Block(b.index, g.Block, g.reserved()+sharedSystem, g.parts()...)
		b.mem.Zero(g.reserved())
	}
	if b.cluster = c; c != nil {
		c.add(b)
	}
	b.seat = len(g.here)
	g.here = append(g.here, b)
	for _, w := range b.warps {
		w.begin()
		b.wake(w)
	}
	return b
}

// newWarp makes a warp of a kernel, see begin.
func newWarp(b *block, index int) *warp {
	g := b.grid
	code := g.Kernel.code
	return &warp{block: b, index: index, seat: -1,
		regs: make([]alu.Lanes, code.slots), consts: g.Image.consts[g.Kernel], own: newPrivate(code)}
}

// begin is the start of the threads of a warp.
func (w *warp) begin() {
	w.live = ^uint32(0)
	if rest := w.block.grid.threads() - 32*w.index; rest < 32 {
		w.live = 1<<rest - 1
	}
	w.n, w.current = 1, 0
	w.groups[0] = group{mask: w.live}
	w.polled, w.strong, w.vain = poll{}, nil, 0
	w.final, w.far, w.access, w.again, w.lane = w.far, place{}, poll{}, false, -1
	w.copies = nil
	w.late, w.loads, w.apart = w.late[:0], 0, w.apart[:0]
	w.came, w.crossed = 0, 0
	w.strayed, w.lead = 0, decision.Decision{}
	w.own.clear()
	w.shades.forget()
	w.unknown.clear()
	for _, s := range w.block.grid.Kernel.code.specials {
		s.set(w, &w.regs[s.slot])
	}
}

// wake makes a warp ready.
func (b *block) wake(w *warp) {
	if w.seat < 0 {
		b.grid.world.makeReady(w)
		b.ready++
	}
}

// rest makes a warp not ready: all its threads wait.
func (b *block) rest(w *warp) {
	b.grid.world.unready(w)
	b.ready--
	b.stuck()
}

// ended is called when threads of a warp have ended. Barriers and votes do not wait for
// them any longer.
func (b *block) ended(w *warp, mask uint32) {
	b.grid.world.progress()
	b.mem.Exit(w.index, mask)
	b.live -= bits.OnesCount32(mask)
	c := b.cluster
	if c != nil {
		c.exit(w, mask)
	}
	if b.live == 0 {
		b.grid.world.unready(w)
		b.ready--
		b.leave()
		if f := b.mem.Outlasted(); f != nil {
			b.grid.stop(f)
			return
		}
		if t := b.abandoned(); t != nil {
			t.warp.failAt(t.in, t.lane, weakmem.BadInstruction, 0,
				"the block has ended, and nothing waited until this copy no longer uses its shared memory")
			return
		}
		if c != nil {
			c.stuck()
		}
		b.grid.ended++
		if b.grid.ended == b.grid.blocks {
			b.grid.end()
		}
		b.grid.world.fill(b.grid.Device)
		return
	}
	for id := range b.bars {
		if bar := &b.bars[id]; bar.arrived > 0 && bar.count == 0 {
			b.complete(uint32(id))
		}
	}
	if w.live != 0 {
		w.retrySync()
		w.arriveTogether()
	} else {
		b.grid.world.unready(w)
		b.ready--
		b.stuck()
	}
}

// leave frees the multiprocessor's room of a block that has ended or was stopped.
func (b *block) leave() {
	g := b.grid
	b.mem.End()
	b.sm.free(g)
	last := g.here[len(g.here)-1]
	g.here[b.seat] = last
	last.seat = b.seat
	g.here = g.here[:len(g.here)-1]
	for i := range b.bars {
		b.bars[i].clear()
	}
	b.ready, b.mbarriers = 0, nil
	if b.cluster == nil {
		g.spare = append(g.spare, b)
	} else {
		b.cluster.leave()
	}
}
