package grid

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// A Window is memory that each rank has on its device and all ranks can access: the
// addresses in this rank's context, in order of rank, and the length in bytes, the
// same on all ranks. It must outlast the operations in it, and graphs that hold them.
type Window struct {
	At    []uint64
	Bytes int
}

// A WindowOffset is where a buffer begins in a window, the same on all ranks. The zero
// WindowOffset means that the buffer is in no window.
type WindowOffset struct {
	Window *Window
	Offset int
}

// ErrNoWindow says that this Engine has no window kernel for a collective.
var ErrNoWindow = errors.New("grid: not in windows")

// windows carry out collectives in the ranks' own registered memory.
type windows struct {
	*base
	gates  []uint64 // addresses of all ranks' gates
	epochs uintptr  // in device memory
	shapes func(d Direct, ranks, bytes int) windowShape
	args   windowArgs // of the current launch
}

func (w *windows) open(*Options) (err error) {
	at := w.links.Gates()
	if len(at) != w.ranks || w.ranks < 2 || w.ranks > MaxDirect {
		return nil
	}
	w.gates, w.shapes = at, shapeOf
	w.epochs, err = w.allocClear(8 * MaxBlocks)
	return err
}

// A windowShape is the number of blocks, the threads of each, and the bytes that a
// block moves at once.
type windowShape struct{ blocks, threads, tile int }

// gateShape is the shape of a kernel that only passes a gate.
var gateShape = windowShape{blocks: 1, threads: 32, tile: 128}

// shapeOf returns the shape of an operation, the same on all ranks.
func shapeOf(d Direct, ranks, bytes int) windowShape {
	blocks, tile := collective.WindowShape(d, ranks, bytes)
	return windowShape{blocks: blocks, threads: maxThreads, tile: tile}
}

// CanWindow reports whether RunWindow has a collective. All ranks find the same.
func (w *windows) CanWindow(d Direct) bool {
	in, out := d.InWindow()
	return len(w.gates) > 0 && (in || out)
}

// PrepareWindow is Prepare for RunWindow. RunCopies needs PrepareWindow(nil) too.
func (w *windows) PrepareWindow(r *kernels.Reducer) error {
	if len(w.gates) == 0 {
		return ErrNoWindow
	}
	return w.prepared(r, "window")
}

// RunWindow queues a kernel on the job's stream that reads and writes the ranks'
// own memory. The arguments are those of RunDirect, without its limit on bytes.
// in and out say where in windows the buffers lie for which InWindow asks; other
// buffers are the job's alone. The results have the same bits as those of RunDirect,
// and memory may be in place in the same ways.
//
// The kernel waits at its beginning until all ranks have started it, and at its end
// until all have finished. So earlier and later work on the stream has this rank's
// memory to itself. Ranks at different calls find out as with RunDirect.
func (w *windows) RunWindow(j *Job, d Direct, in, out WindowOffset, root sched.Rank, bytes int) error {
	if !w.CanWindow(d) {
		return fmt.Errorf("%w: %v", ErrNoWindow, d)
	}
	if err := w.checkWindow(j, d, &in, &out, root, bytes); err != nil {
		return err
	}
	a := w.argsOf(j, d, in, out, root, bytes)
	l := w.buffersOf(j, in, out)
	a.layMoves(&l, d, int(root), bytes)
	return w.launchWindow(j, j.Reducer, a, w.shapes(d, w.ranks, bytes), j.Event)
}

// launchWindow queues a kernel, and the record of an event behind it if that is not 0.
func (w *windows) launchWindow(j *Job, r *kernels.Reducer, a *windowArgs, x windowShape, event cuda.Event) error {
	m, prog, err := w.module(r, "window")
	if err != nil {
		return err
	}
	a.scalar, a.value, a.finish = uint64(j.Scalar), prog.Value, only[uint32](prog.Finishes, 1)
	blocks := j.most(min(x.blocks, w.directBlocks))
	a.cut(x.tile, blocks)
	w.shape(blocks, min(x.threads, w.threads), 0, j.Stream)
	kernel := m.run
	if a.loose(r != nil, w.ranks) {
		kernel = m.loose
	}
	return w.queue(kernel, cuda.ArgsOf(a), event)
}

// checkWindow looks at the memory, as checkDirect does, and checks that it lies where
// the offsets say. It clears offsets that are not needed.
func (w *windows) checkWindow(j *Job, d Direct, in, out *WindowOffset, root sched.Rank, bytes int) error {
	if err := w.checkDirect(j, d, root, bytes); err != nil {
		return err
	}
	isRoot, inBytes, outBytes := w.rank == root, bytes, bytes
	ownIn, ownOut := true, true // this rank's own buffer has to lie there
	switch d {
	case ReduceScatter:
		inBytes *= w.ranks
	case AllGather, AllToAll:
		outBytes *= w.ranks
	case Gather:
		ownIn = !isRoot
	case Scatter:
		ownOut = !isRoot
	case Reduce:
		ownOut = isRoot
	}
	needIn, needOut := d.InWindow()
	return w.checkBuffers(j, w.outsideWindow(in, j.In, needIn, ownIn, inBytes),
		w.outsideWindow(out, j.Out, needOut, ownOut, outBytes))
}

// outsideWindow says what is wrong with the offset of a buffer of n bytes, "" if
// nothing is or it is not needed. own: this rank's own buffer has to lie there too.
func (w *windows) outsideWindow(p *WindowOffset, r mem.Region, needed, own bool, n int) string {
	if !needed {
		*p = WindowOffset{}
		return ""
	}
	x := p.Window
	switch {
	case x == nil:
		return "in no window: register it on all ranks"
	case len(x.At) != w.ranks:
		return fmt.Sprintf("a window of %d ranks, of %d", len(x.At), w.ranks)
	case p.Offset < 0 || n > x.Bytes-p.Offset:
		return fmt.Sprintf("%d bytes at %d of a window of %d", n, p.Offset, x.Bytes)
	case own && n > 0 && uint64(r.Ptr()) != x.At[w.rank]+uint64(p.Offset):
		return fmt.Sprintf("address %#x is not at %d of the window at %#x", r.Ptr(), p.Offset, x.At[w.rank])
	}
	return ""
}

// buffersOf returns where each rank's In and Out of a job are.
func (w *windows) buffersOf(j *Job, in, out WindowOffset) (l buffers) {
	in.fill(&l.in)
	out.fill(&l.out)
	if j.In.Len() > 0 {
		l.in[w.rank] = uint64(j.In.Ptr())
	}
	if j.Out.Len() > 0 {
		l.out[w.rank] = uint64(j.Out.Ptr())
	}
	return l
}

// fill sets the addresses of all ranks, if there is a window.
func (p *WindowOffset) fill(at *[MaxDirect]uint64) {
	if p.Window == nil {
		return
	}
	for q, base := range p.Window.At {
		at[q] = base + uint64(p.Offset)
	}
}

// argsOf sets the arguments that all kernels of an operation have.
func (w *windows) argsOf(j *Job, d Direct, in, out WindowOffset, root sched.Rank, bytes int) *windowArgs {
	a := &w.args
	*a = windowArgs{comm: w.collective(j), epochs: uint64(w.epochs), pass: 2, before: 1, part: beginsOp | endsOp,
		targets: 1}
	copy(a.gates[:], w.gates)
	what := uint64(d) | uint64(root)<<8
	if d == AllToAll && j.In.Ptr() == j.Out.Ptr() {
		what |= 1 << 63
	}
	a.hash = hashOf(j.Stamp, what, uint64(bytes), uint64(in.Offset), uint64(out.Offset))
	return a
}
