package simt

import (
	"math/bits"
	"slices"

	"github.com/ringo-go/ringo/internal/emu/ptx"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// copies are those of a thread that complete by groups: plain ones and bulk ones apart.
type copies struct{ plain, bulk groups }

// groups are the copies that wait_group waits for.
type groups struct {
	open   []*transfer   // since the last commit
	closed [][]*transfer // the oldest first
	read   int           // of closed, for whose reads the thread has waited
}

func (g *groups) commit() { g.closed, g.open = append(g.closed, g.open), nil }

// wait finishes all groups but the last n, and the thread knows it.
func (g *groups) wait(w *warp, lane, n int) {
	for len(g.closed) > n {
		for _, t := range g.closed[0] {
			t.finish()
			w.block.mem.Know(w.index, 1<<lane, t.Done())
		}
		g.closed = g.closed[1:]
		g.read = max(g.read-1, 0)
	}
}

// waitRead finishes the reads of all groups but the last n.
func (g *groups) waitRead(w *warp, lane, n int) {
	for ; g.read < len(g.closed)-n; g.read++ {
		for _, t := range g.closed[g.read] {
			t.Read()
			t.noteRead()
			w.block.mem.Know(w.index, 1<<lane, t.Seen())
		}
	}
}

// copiesOf are those of a thread.
func (w *warp) copiesOf(lane int) *copies {
	if w.copies == nil {
		w.copies = new([32]copies)
	}
	return &w.copies[lane]
}

// A groupOp is about the groups of copies of a thread.
type groupOp struct {
	bulk, read bool
	n          int // groups that may go on
}

func (op groupOp) of(w *warp, lane int) *groups {
	if op.bulk {
		return &w.copiesOf(lane).bulk
	}
	return &w.copiesOf(lane).plain
}

func execCommit(w *warp, in *inst, mask uint32) status {
	op := in.x.(groupOp)
	for m := mask; m != 0; m &= m - 1 {
		op.of(w, bits.TrailingZeros32(m)).commit()
	}
	return next
}

func execWaitGroup(w *warp, in *inst, mask uint32) status {
	op := in.x.(groupOp)
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if g := op.of(w, lane); op.read {
			g.waitRead(w, lane, op.n)
		} else {
			g.wait(w, lane, op.n)
		}
	}
	return w.alive()
}

// execWaitAll waits for copies that are in no group too.
func execWaitAll(w *warp, in *inst, mask uint32) status {
	execCommit(w, in, mask)
	return execWaitGroup(w, in, mask)
}

// alive is what to return after something that may have stopped the grid.
func (w *warp) alive() status {
	if w.seat < 0 {
		return gone
	}
	return next
}

// A copyArrive is cp.async.mbarrier.arrive.
type copyArrive struct {
	pointer
	counted bool // .noinc: the arrival is one of those that the barrier expects
}

func decodeCopyArrive(c *compiler, fr *frame, in *ptx.Instr) {
	d := inst{exec: execCopyArrive}
	d.x = &copyArrive{c.pointer(fr, in, &d, in.Operands[0], in.Space), in.Has("noinc")}
	c.emit(fr, in, d)
}

func execCopyArrive(w *warp, in *inst, mask uint32) status {
	op := in.x.(*copyArrive)
	for l := mask; l != 0; l &= l - 1 {
		lane := bits.TrailingZeros32(l)
		at, s := w.inOwn(in, &op.pointer, in.src[0], lane)
		if s != next {
			return s
		}
		m, s := w.mbarrier(in, 1<<lane, w.block, at)
		if s != next {
			return s
		}
		if !op.counted {
			if m.pending == mostArrivals {
				return w.failAt(in, lane, weakmem.BadInstruction, at, "one arrival more at the "+m.String())
			}
			m.pending++
		}
		a := &lateArrival{bar: m}
		g := &w.copiesOf(lane).plain
		for _, list := range append(slices.Clone(g.closed), g.open) {
			for _, t := range list {
				if t.seat < 0 {
					a.done = weakmem.Join(a.done, t.Done())
				} else {
					t.arrive = append(t.arrive, a)
					a.left++
				}
			}
		}
		if a.left == 0 {
			if wrong := m.arrive(1, a.done, false); wrong != "" {
				return w.failAt(in, lane, weakmem.BadInstruction, at, wrong)
			}
		}
	}
	w.block.grid.world.progress()
	return next
}
