package simt

import (
	"github.com/ringo-go/ringo/internal/emu/decision"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// A transfer is an asynchronous copy that a thread has begun. The World carries it on a
// little now and then; a thread that waits for it finishes it, which is one of the
// schedules that hardware may choose.
type transfer struct {
	*weakmem.Transfer
	grid   *Grid
	seat   int // in World.transfers, -1 when it is finished
	warp   *warp
	in     *inst
	lane   int
	bar    *mbarrier // told of the bytes when all is done; nil: none
	bytes  int
	arrive []*lateArrival

	began uint64 // planner.turns
	by    decision.Warp
	late  []decision.Late
}

// A lateArrival is cp.async.mbarrier.arrive: an arrival at a barrier when copies are done.
type lateArrival struct {
	bar  *mbarrier
	left int // copies
	done weakmem.Clock
}

// launch begins a copy, to the shared memory of a block if it goes to shared memory. A nil transfer says that the grid
// was stopped.
func (w *warp) launch(in *inst, lane int, plan weakmem.Plan, to *block, bar *mbarrier) *transfer {
	made, f := w.block.mem.Begin(w.index, lane, plan)
	if f != nil {
		w.stopped(in, f)
		return nil
	}
	world := w.block.grid.world
	t := &transfer{Transfer: made, grid: w.block.grid, seat: len(world.transfers), warp: w, in: in, lane: lane, bar: bar,
		bytes: plan.Bytes}
	t.planCopy()
	world.transfers = append(world.transfers, t)
	w.block.copies = append(w.block.copies, t)
	if to != w.block {
		to.copies = append(to.copies, t)
	}
	return t
}

// carry moves some bytes of one copy under way, in some calls. How slow copies are depends on the seed.
func (w *World) carry() {
	if w.cfg.Book.Follows() || w.random.below(w.pace) > 0 {
		return
	}
	t := w.transfers[w.random.below(len(w.transfers))]
	w.progress()
	if t.Advance() {
		t.finish()
	} else if w.cfg.Book.Records() {
		t.noteRead()
	}
}

// paces: of so many bursts of instructions, one moves a copy on.
var paces = [...]int{1, 4, 24}

// finish finishes a copy, if it is not, and tells its barrier.
func (t *transfer) finish() {
	if t.seat < 0 {
		return
	}
	t.Finish()
	t.forget()
	wrong := ""
	if t.bar != nil {
		t.bar.coming = weakmem.Join(t.bar.coming, t.Done())
		wrong = t.bar.expect(-t.bytes)
	}
	for _, a := range t.arrive {
		a.done = weakmem.Join(a.done, t.Done())
		if a.left--; a.left == 0 && wrong == "" {
			wrong = a.bar.arrive(1, a.done, false)
		}
	}
	t.grid.world.progress()
	if wrong != "" {
		t.warp.failAt(t.in, t.lane, weakmem.BadInstruction, 0, wrong)
	}
}

// forget takes the transfer off the World's list of those under way.
func (t *transfer) forget() {
	list := t.grid.world.transfers
	last := list[len(list)-1]
	list[t.seat] = last
	last.seat = t.seat
	list[len(list)-1] = nil
	t.grid.world.transfers = list[:len(list)-1]
	t.seat = -1
	if t.grid.world.cfg.Book != nil {
		t.noteEnd()
	}
}

// land finishes the copies of a grid that ends, or drops them if it was stopped.
func (w *World) land(g *Grid) {
	for i := len(w.transfers) - 1; i >= 0; i-- {
		if t := w.transfers[i]; t.grid == g {
			if g.fault == nil {
				t.Finish()
			}
			t.forget()
		}
	}
}

// abandoned returns a copy for which nothing had waited when the block ended, so that it may
// still use the block's shared memory; nil if there is none.
func (b *block) abandoned() *transfer {
	for _, t := range b.copies {
		if t.Leaves(b.mem) {
			return t
		}
	}
	return nil
}
