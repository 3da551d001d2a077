package simt

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

// fail stops the grid with a fault of the first thread of mask.
func (w *warp) fail(in *inst, mask uint32, kind weakmem.FaultKind, format string, args ...any) status {
	return w.failAt(in, bits.TrailingZeros32(mask), kind, 0, fmt.Sprintf(format, args...))
}

// failAt stops the grid with a fault of a thread at an address.
func (w *warp) failAt(in *inst, lane int, kind weakmem.FaultKind, addr uint64, why string) status {
	g := w.block.grid
	f := &weakmem.Fault{Kind: kind, Device: g.Device, Kernel: g.Kernel.Name, Line: in.ptx.Line, Block: w.block.index,
		Thread: w.thread(lane), Addr: addr, Detail: why, Count: 1, For: g.mem.Call()}
	if a, ok := in.x.(*access); ok {
		f.Size = a.size * max(1, len(in.dst), len(in.src)-1)
		f.Write = len(in.dst) == 0
	}
	return w.stopped(in, f)
}

// failPair stops the grid with a fault of some threads of the warp at an instruction, and others at another one.
func (w *warp) failPair(in *inst, mask uint32, other *inst, others uint32, why string) {
	g := w.block.grid
	lane, line := bits.TrailingZeros32(mask), 0
	if other.ptx != nil {
		line = other.ptx.Line
	}
	w.stopped(in, &weakmem.Fault{Kind: weakmem.BadInstruction, Device: g.Device, Kernel: g.Kernel.Name, Line: in.ptx.Line,
		Block: w.block.index, Thread: w.thread(lane), Detail: why, Count: 1, For: g.mem.Call(),
		Other: &weakmem.Other{Device: g.Device, Kernel: g.Kernel.Name, Line: line, Block: w.block.index,
			Thread: w.thread(bits.TrailingZeros32(others)), For: g.mem.Call(), Why: why}})
}

// stopped stops the grid with a fault of the instruction, whose text it adds.
func (w *warp) stopped(in *inst, f *weakmem.Fault) status {
	if f.Detail != "" {
		f.Detail += ", "
	}
	f.Detail += "in " + in.ptx.Text
	w.block.grid.stop(f)
	return gone
}

// A poll is the last strong access of a warp while World.watch is set.
type poll struct {
	in     *inst
	lane   int
	addr   uint64
	value  uint64
	shared bool
	bar    *mbarrier // instead of memory
}

func (p *poll) String() string {
	if p.bar != nil {
		return p.bar.String()
	}
	space := "global"
	if p.shared {
		space = "shared"
	}
	return fmt.Sprintf("%s %#x, which is %#x", space, p.addr, p.value)
}

// stuck stops the grid if no thread of the block can go on, because all wait for each
// other.
func (b *block) stuck() {
	switch {
	case b.ready > 0 || b.live == 0:
	case b.cluster != nil && b.cluster.holdsUp(b):
		b.cluster.stuck()
	default:
		b.grid.deadlock("no thread of the block can go on", b)
	}
}

// stall looks for threads that run without anything changing, see Config.Stall.
func (w *World) stall() {
	if w.cfg.Stall == 0 || len(w.ready) == 0 {
		return
	}
	if c := w.cfg.Memory.Changes(); c != w.changes {
		w.changes = c
		w.progress()
		return
	}
	quiet, limit := w.ran-w.quiet, uint64(w.cfg.Stall)
	switch {
	case quiet < limit/2:
	case !w.watch:
		w.watch = true
		for _, x := range w.ready {
			x.polled = poll{}
		}
	case quiet >= limit && w.polling() || quiet >= limit*patience:
		// All stop at once, the last first: stopping one must not make another resident.
		for _, g := range slices.Backward(slices.Clone(w.grids)) {
			if len(g.here) > 0 {
				g.deadlock(fmt.Sprintf("nothing has changed for %d instructions of all threads", quiet), g.here...)
			} else {
				g.deadlock("no block became resident")
			}
		}
	}
}

// patience is the factor on Config.Stall for threads that do not poll: they compute, for up to some 10 s.
const patience = 4096

// polling reports whether all warps that run do poll.
func (w *World) polling() bool {
	for _, x := range w.ready {
		if x.polled.in == nil {
			return false
		}
	}
	return true
}

func triple(v [3]int) string { return fmt.Sprintf("(%d,%d,%d)", v[0], v[1], v[2]) }

// waiters is how many waiting threads a report names.
const waiters = 6

// deadlock stops the grid. The report names some threads of the blocks, and their waits.
func (g *Grid) deadlock(why string, blocks ...*block) {
	f := &weakmem.Fault{Kind: weakmem.Deadlock, Device: g.Device, Kernel: g.Kernel.Name, Line: g.Kernel.Func.Line,
		Count: 1, For: g.mem.Call()}
	lines := []string{why}
	ins := g.Kernel.code.ins
	named := 0
	for _, b := range blocks {
		for _, w := range b.warps {
			for i := range w.n {
				gr := &w.groups[i]
				in := &ins[gr.pc]
				thread := w.thread(bits.TrailingZeros32(gr.mask))
				others := ""
				if n := bits.OnesCount32(gr.mask) - 1; n > 0 {
					others = fmt.Sprintf(" and %d more of its warp", n)
				}
				what := fmt.Sprintf("block %s, thread %s%s, line %d: ", triple(b.index), triple(thread), others, in.ptx.Line)
				switch {
				case gr.wait == atBarrier:
					bar := &b.bars[gr.value%arriving]
					of := fmt.Sprintf("all %d that live", b.live)
					if bar.count > 0 {
						of = fmt.Sprint(bar.count)
					}
					what += fmt.Sprintf("wait at barrier %d, where %d of %s have arrived", gr.value%arriving, bar.arrived, of)
				case gr.wait == atCluster:
					what += b.cluster.String()
				case gr.wait == atSync:
					what += fmt.Sprintf("wait for threads %#x of their warp at %s", gr.value&w.live&^gr.mask, in.ptx.Name())
				case w.polled.in != nil:
					in = w.polled.in
					thread = w.thread(w.polled.lane)
					what = fmt.Sprintf("block %s, thread %s, line %d: polls %s", triple(b.index), triple(thread), in.ptx.Line,
						&w.polled)
				default:
					what += "runs"
				}
				if named == 0 {
					f.Line, f.Block, f.Thread = in.ptx.Line, b.index, thread
					if gr.wait == running {
						f.Addr, f.Shared = w.polled.addr, w.polled.shared
					}
				}
				if named++; named <= waiters {
					lines = append(lines, what)
				}
			}
		}
	}
	if named > waiters {
		lines = append(lines, fmt.Sprintf("and %d more groups of threads", named-waiters))
	}
	if left := g.blocks - g.resident; left > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d blocks are not resident, there is no room for them before others end",
			left, g.blocks))
	}
	f.Detail = strings.Join(lines, "\n\t")
	g.stop(f)
}
