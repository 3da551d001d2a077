package weakmem

import "github.com/ringo-go/ringo/internal/emu/alu"

// LateLoad reports whether a load may be carried out late, after what follows it in its thread: until its value is
// used, or something comes that Passes refuses. So a load may see what follows from a later store of its own thread
// (load buffering), which PTX allows for strong loads that acquire nothing. The memory has one address.
func (b *Block) LateLoad(warp int, mask uint32, addr *alu.Lanes, bytes int, how How) bool {
	if b.memory.config.Plain || how.Order != Relaxed || how.Shared {
		return false
	}
	for m := mask; m != 0; {
		r := nextRun(m, addr, bytes)
		m &^= r.mask
		if s := b.find(&b.warps[warp], r.addr); s == nil || s.Physical != 0 || s.foreign() {
			return false
		}
	}
	return true
}

// Passes reports whether a load or a store of other bytes may be carried out before a LateLoad that it follows.
func (how How) Passes() bool { return how.Order <= Relaxed && !how.Async }
