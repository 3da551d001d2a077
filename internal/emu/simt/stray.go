package simt

import (
	"math/bits"

	"github.com/ringo-go/ringo/internal/emu/alu"
	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// Threads of a warp need not go side by side since Volta: under one seed of seedsStray, one in straysIn of the strong
// accesses of several addresses is made by some threads before the others, and those go ahead for strayLead more.
const seedsStray, straysIn, strayLead = 3, 8, 8

// mostStray is how many bytes of a thread. Of vectors of 16 hardware makes a line of 128 bytes: see
// weakmem.Config.Lines.
const mostStray = 8

// stray decides which threads make a strong access, and leaves the others of the group behind.
func (w *warp) stray(in *inst, a *access, mask uint32, addr *alu.Lanes) uint32 {
	world := w.block.grid.world
	first, last := bits.TrailingZeros32(mask), 31-bits.LeadingZeros32(mask)
	if !world.strays || a.how.Order == weakmem.Weak || w.n > 1 || addr[first] == addr[last] ||
		a.size*max(len(in.dst), len(in.src)-1) > mostStray {
		return mask
	}
	w.strayed++
	d := decision.Decision{Kind: decision.Stray, Warp: w.id(), At: w.strayed}
	book := world.cfg.Book
	if book.Follows() {
		var ok bool
		if d, ok = book.Take(decision.Stray, d.Warp, d.At, 0); !ok {
			return mask
		}
		book.Tell(d, decision.Scene{Kernel: w.block.grid.Kernel.Name, Line: in.ptx.Line,
			Thread: 32*w.index + bits.TrailingZeros32(d.Lanes)})
	} else if world.random.below(straysIn) > 0 {
		return mask
	} else {
		ahead := uint32(world.random.next())
		if half := world.random.below(4); half < 2 {
			ahead = 0xffff << (16 * half)
		}
		d.Lanes = ahead & mask
	}
	g := &w.groups[w.current]
	ahead := d.Lanes & mask
	if ahead == 0 || ahead == g.mask {
		return mask
	}
	here := g.pc
	g.pc = -1 // the others are no part of it, though at its instruction
	w.add(group{pc: here, mask: g.mask &^ ahead})
	g = &w.groups[w.current]
	g.pc, g.mask, w.forced = here, ahead, true
	switch {
	case book.Follows():
		w.lane, w.until = bits.TrailingZeros32(ahead), d.Until
		w.left = max(1, int(d.Until-min(d.Until, w.far.count)))
	case book.Records():
		w.lane, w.from, w.stale, w.lead = bits.TrailingZeros32(ahead), w.far, false, d
		fallthrough
	default:
		w.left += pollCost * (1 + world.random.below(strayLead))
	}
	return ahead
}
