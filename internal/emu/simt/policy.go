package simt

// A policy is how the scheduler picks warps. The seed chooses one of several, since
// each finds faults that others miss.
type policy struct {
	kind    int
	longest int    // warp-instructions in a row
	until   uint64 // when victim changes, in thread-instructions
	victim  *warp  // does not run for a while
	late    int    // the device that does not run for a while, -1 for none
	ahead   *block // runs mostly
}

const (
	uniform = iota // any warp
	starve         // one warp is kept waiting, for long
	favour         // one block runs much faster
	lag            // one device runs much later than others
	steady         // as uniform, in long bursts
	policies
)

func newPolicy(seed uint64, r *random) policy {
	p := policy{kind: int(seed % policies), longest: 32, late: -1}
	if p.kind == steady {
		p.longest = 1024
	} else if r.below(4) == 0 {
		p.longest = 4
	}
	return p
}

// choose is the warp to run, and for how many instructions. There has to be one.
func (p *policy) choose(w *World) (*warp, int) {
	r := &w.random
	x := w.ready[r.below(len(w.ready))]
	switch p.kind {
	case starve:
		if w.ran >= p.until {
			p.victim, p.until = x, w.ran+r.next()%200_000
		}
	case lag:
		if w.ran >= p.until {
			p.late, p.until = x.block.grid.Device, w.ran+r.next()%400_000
		}
	case favour:
		if w.ran >= p.until {
			p.ahead, p.until = x.block, w.ran+r.next()%100_000
		}
		if p.ahead.ready > 0 && r.below(8) > 0 {
			if y := p.ahead.warps[r.below(len(p.ahead.warps))]; y.seat >= 0 {
				x = y
			}
		}
	}
	for range 8 {
		if !p.wait(x, r) {
			break
		}
		x = w.ready[r.below(len(w.ready))]
	}
	return x, 1 + r.below(p.longest)
}

// polledInVain is the number of polls in a row after which a warp mostly lets others
// run.
const polledInVain = 8

// wait reports whether another warp had better run.
func (p *policy) wait(x *warp, r *random) bool {
	return x == p.victim || x.block.grid.Device == p.late || x.vain > polledInVain && r.below(8) > 0
}
