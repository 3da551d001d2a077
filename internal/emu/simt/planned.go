package simt

import (
	"math/bits"
	"slices"

	"github.com/ringo-go/ringo/internal/emu/decision"
)

// A planner is how a World with a Book chooses: in the plain order, but for the decisions of the Book.
type planner struct {
	running *warp // the last one that ran; its place may have been taken by another since
	id      decision.Warp
	at      place  // how far it is
	longest uint64 // World.ran when it has run for long
	turns   uint64
}

// In the plain order a warp runs so many thread-instructions in a row at most, and looks at the Book after so many
// instructions at the latest.
const plainTurn, plainStep = 1 << 20, 32

// A place is how far a warp is: the instructions that it has executed, but those of polls in vain, and how often it has
// polled in vain since.
type place struct{ count, round uint64 }

// id is the name of a warp for a Book.
func (w *warp) id() decision.Warp {
	g := w.block.grid
	return decision.Warp{Device: g.Device, Launch: g.launch, Block: w.block.index, Warp: w.index}
}

// planned is the warp to run, and for how many instructions, where the seed would have x run n.
func (w *World) planned(x *warp, n int) (*warp, int) {
	book, p := w.cfg.Book, &w.plan
	plain := w.plain()
	if book.Follows() {
		x, n = plain, plainStep
	}
	if book.Records() && x != plain {
		book.Add(decision.Decision{Kind: decision.Switch, Warp: p.id, At: p.at.count, Round: p.at.round, To: x.id()})
	} else if book.Follows() {
		if d, ok := book.Take(decision.Switch, p.id, p.at.count, p.at.round); ok {
			if y := w.named(d.To); y != nil {
				w.tellSwitch(d, y)
				x = y
			}
		}
	}
	if id := x.id(); p.running != x || p.id != id || x.again {
		w.rotation++
		x.last = w.rotation
		p.running, p.id, p.longest = x, id, w.ran+plainTurn
		p.turns++
		w.cfg.Memory.Turn()
		w.carryDue()
	}
	if book.Follows() {
		n = int(book.Next(p.id, x.far.count, uint64(n)))
	}
	return x, n
}

// plain is the warp that runs in the plain order.
func (w *World) plain() *warp {
	p := &w.plan
	if x := p.running; x != nil && x.seat >= 0 && x.id() == p.id && !x.again && w.ran < p.longest {
		return x
	}
	x := w.ready[0]
	for _, y := range w.ready {
		if y.last < x.last {
			x = y
		}
	}
	return x
}

// ran notes how far the warp is that ran, which may have ended.
func (p *planner) ran() {
	x := p.running
	if p.at = x.far; x.id() != p.id {
		p.at = x.final
	}
}

// named is the warp of a name, nil if it cannot run.
func (w *World) named(id decision.Warp) *warp {
	i := slices.IndexFunc(w.ready, func(x *warp) bool { return x.id() == id })
	if i < 0 {
		return nil
	}
	return w.ready[i]
}

// tellSwitch tells that another warp runs now.
func (w *World) tellSwitch(d decision.Decision, to *warp) {
	s := decision.Scene{ToKernel: to.block.grid.Kernel.Name, ToLine: to.line()}
	if x := w.plan.running; x != nil && x.id() == w.plan.id {
		s.Kernel, s.Line, s.Thread = x.block.grid.Kernel.Name, x.line(), 32*x.index
	}
	w.cfg.Book.Tell(d, s)
}

// line is where the warp goes on, a line of PTX; 0 if it has ended.
func (w *warp) line() int {
	if w.live == 0 || w.n == 0 {
		return 0
	}
	return w.block.grid.Kernel.code.ins[w.groups[min(w.current, w.n-1)].pc].ptx.Line
}

// planGroup picks the group that runs, of those that can and of which best has the lowest rank: that one, but where it
// polls in vain the next one, or as the Book says.
func (w *warp) planGroup(can []int, best int) {
	book := w.block.grid.world.cfg.Book
	lane, stale := w.lane, w.stale
	w.stale = false
	if stale || w.far.count >= w.until {
		lane = -1
	}
	if d, ok := book.Take(decision.Part, w.id(), w.far.count, w.far.round); ok {
		book.Tell(d, decision.Scene{Kernel: w.block.grid.Kernel.Name, Line: w.line(), Thread: 32*w.index + d.Lane})
		if lane, stale = -1, false; d.Until > 0 {
			lane, w.until = d.Lane, d.Until
		}
	}
	if w.lane = lane; lane < 0 && stale {
		lane = w.nextLane(can)
	}
	w.current = best
	for _, i := range can {
		if lane >= 0 && w.groups[i].mask>>lane&1 != 0 {
			w.current, w.forced = i, true
		}
	}
}

// nextLane is the first thread of the next group after the one that ran, by their first threads.
func (w *warp) nextLane(can []int) int {
	after, first := 32, 32
	for _, i := range can {
		lane := bits.TrailingZeros32(w.groups[i].mask)
		first = min(first, lane)
		if lane > w.ranLane {
			after = min(after, lane)
		}
	}
	if after == 32 {
		return first
	}
	return after
}

// parted writes down which threads went first, and until when.
func (w *warp) parted() {
	if book := w.block.grid.world.cfg.Book; w.lane >= 0 && book.Records() && w.lead.Kind != "" {
		w.lead.Until = w.far.count
		book.Add(w.lead)
		w.lead = decision.Decision{}
	} else if w.lane >= 0 && book.Records() {
		book.Add(decision.Decision{Kind: decision.Part, Warp: w.id(), At: w.from.count, Round: w.from.round,
			Lane: w.lane, Until: w.far.count})
	}
	w.lane = -1
}

// unparted writes down that threads go on first that poll in vain.
func (w *warp) unparted() {
	w.stale = false
	w.block.grid.world.cfg.Book.Add(decision.Decision{Kind: decision.Part, Warp: w.id(), At: w.far.count,
		Round: w.far.round, Lane: bits.TrailingZeros32(w.groups[w.current].mask)})
}

// noteRead notes that a copy has read all.
func (t *transfer) noteRead() {
	if turns := t.grid.world.plan.turns; t.Left()&1 == 0 && len(t.late) == 0 && turns > t.began {
		t.late = append(t.late, decision.Late{Units: 1, Turns: turns - t.began})
	}
}

// noteEnd writes down what was late of a copy.
func (t *transfer) noteEnd() {
	w := t.grid.world
	if t.noteRead(); w.cfg.Book.Records() && w.plan.turns > t.began {
		t.late = append(t.late, decision.Late{Units: 2, Turns: w.plan.turns - t.began})
		w.cfg.Book.Add(decision.Decision{Kind: decision.Copy, Warp: t.by, At: uint64(t.Number()), Late: t.late})
	}
}

// planCopy looks up what is to be late of a copy that begins.
func (t *transfer) planCopy() {
	w := t.grid.world
	book := w.cfg.Book
	if book == nil {
		return
	}
	t.began, t.by = w.plan.turns, t.warp.id()
	if !book.Follows() {
		return
	}
	if d, ok := book.Take(decision.Copy, t.by, uint64(t.Number()), 0); ok {
		t.late = d.Late
		book.Tell(d, decision.Scene{Kernel: t.grid.Kernel.Name, Line: t.in.ptx.Line, Thread: 32*t.warp.index + t.lane,
			Size: t.bytes})
	}
}

// carryDue carries out the copies that the Book does not delay any longer.
func (w *World) carryDue() {
	if !w.cfg.Book.Follows() {
		return
	}
	for i := len(w.transfers) - 1; i >= 0; i-- {
		t := w.transfers[i]
		left := uint64(3)
		for _, l := range t.late {
			if w.plan.turns < t.began+l.Turns {
				left &^= l.Units
			}
		}
		if left&1 != 0 && t.Left()&1 != 0 {
			t.Read()
			w.progress()
		}
		if left&2 != 0 {
			w.progress()
			t.finish()
		}
		i = min(i, len(w.transfers))
	}
}
