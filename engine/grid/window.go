package grid

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
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

// CanWindow reports whether RunWindow has a collective. All ranks find the same.
func (e *Engine) CanWindow(d Direct) bool {
	in, out := d.InWindow()
	return len(e.gates.at) > 0 && (in || out)
}

// PrepareWindow is Prepare for RunWindow. RunCopies needs PrepareWindow(nil) too.
func (e *Engine) PrepareWindow(r *kernels.Reducer) error {
	if len(e.gates.at) == 0 {
		return ErrNoWindow
	}
	_, _, err := e.module(r, "window")
	return err
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
func (e *Engine) RunWindow(j *Job, d Direct, in, out WindowOffset, root sched.Rank, bytes int) error {
	if !e.CanWindow(d) {
		return fmt.Errorf("%w: %v", ErrNoWindow, d)
	}
	if err := e.checkWindow(j, d, &in, &out, root, bytes); err != nil {
		return err
	}
	a := e.windowArgsOf(j, d, in, out, root, bytes)
	x := e.gates.shape(d, e.ranks, bytes)
	e.layMoves(a, e.buffersOf(j, in, out), d, root, bytes)
	return e.launchWindow(j, j.Reducer, a, x, j.Event)
}

// launchWindow queues a kernel, and the record of an event behind it if that is not 0.
func (e *Engine) launchWindow(j *Job, r *kernels.Reducer, a *windowArgs, x windowShape, event cuda.Event) error {
	m, prog, err := e.module(r, "window")
	if err != nil {
		return err
	}
	a.scalar, a.value, a.finish = uint64(j.Scalar), prog.Value, 0
	if prog.Finishes {
		a.finish = 1
	}
	threads, blocks := min(x.threads, e.threads), j.most(min(x.blocks, e.mail.blocks))
	a.cut(x.tile, blocks)
	e.frame.launch = cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: uint32(threads)},
		Stream: j.Stream}
	kernel := m.run
	if a.loose(r != nil, e.ranks) {
		kernel = m.loose
	}
	return e.queue(kernel, cuda.ArgsOf(a), event)
}

// checkWindow looks at the memory, as checkDirect does, and checks that it lies where
// the offsets say. It clears offsets that are not needed.
func (e *Engine) checkWindow(j *Job, d Direct, in, out *WindowOffset, root sched.Rank, bytes int) error {
	switch {
	case bytes < 0 || root < 0 || int(root) >= e.ranks:
		return fmt.Errorf("grid: %v of %d bytes, root %d of %d ranks", d, bytes, root, e.ranks)
	case d.Reduces() != (j.Reducer != nil):
		return fmt.Errorf("grid: %v: a reduction needs a reducer, and nothing else does", d)
	}
	size := 1
	if j.Reducer != nil {
		size = j.Reducer.Type().Size()
	}
	if err := e.checkDirect(j, d, root, bytes, size); err != nil {
		return err
	}
	isRoot, inBytes, outBytes := e.rank == root, bytes, bytes
	ownIn, ownOut := true, true // this rank's own buffer has to lie there
	switch d {
	case ReduceScatter:
		inBytes *= e.ranks
	case AllGather, AllToAll:
		outBytes *= e.ranks
	case Gather:
		ownIn = !isRoot
	case Scatter:
		ownOut = !isRoot
	case Reduce:
		ownOut = isRoot
	}
	needIn, needOut := d.InWindow()
	if reason := e.outsideWindow(in, j.In, needIn, ownIn, inBytes); reason != "" {
		return &ArgumentError{"in", int(e.dev), reason}
	}
	if reason := e.outsideWindow(out, j.Out, needOut, ownOut, outBytes); reason != "" {
		return &ArgumentError{"out", int(e.dev), reason}
	}
	return nil
}

// outsideWindow says what is wrong with the offset of a buffer of n bytes, "" if
// nothing is or it is not needed. own: this rank's own buffer has to lie there too.
func (e *Engine) outsideWindow(p *WindowOffset, r mem.Region, needed, own bool, n int) string {
	if !needed {
		*p = WindowOffset{}
		return ""
	}
	w := p.Window
	switch {
	case w == nil:
		return "in no window: register it on all ranks"
	case len(w.At) != e.ranks:
		return fmt.Sprintf("a window of %d ranks, of %d", len(w.At), e.ranks)
	case p.Offset < 0 || n > w.Bytes-p.Offset:
		return fmt.Sprintf("%d bytes at %d of a window of %d", n, p.Offset, w.Bytes)
	case own && n > 0 && uint64(r.Ptr()) != w.At[e.rank]+uint64(p.Offset):
		return fmt.Sprintf("address %#x is not at %d of the window at %#x", r.Ptr(), p.Offset, w.At[e.rank])
	}
	return ""
}
