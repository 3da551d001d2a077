package grid

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// A Window is memory that each rank has on its device and all ranks reach: the
// addresses in this rank's context, in order of rank, and the length, which is
// the same on all ranks. It outlasts the operations in it, and graphs that hold them.
type Window struct {
	At    []uint64
	Bytes int
}

// A Place is where a buffer begins in a window, the same on all ranks. The zero
// Place is in none.
type Place struct {
	Window *Window
	Offset int
}

// ErrNoWindow says that this Engine does not carry out a collective in windows.
var ErrNoWindow = errors.New("grid: not in windows")

// InWindow reports which buffers of a collective have to be in a window. All
// ranks give the place, also those without such a buffer: of Reduce, the root's Out.
// Where the root alone may be in place it need not be there itself: Gather's place
// is that of the others' In, Scatter's that of the others' Out. An all-reduce is TwoShot.
func (d Direct) InWindow() (in, out bool) {
	switch d {
	case TwoShot, Reduce:
		return true, true
	case ReduceScatter, Gather:
		return true, false
	case AllGather, AllToAll, Broadcast, Scatter:
		return false, true
	}
	return false, false
}

// CanWindow reports whether RunWindow has a collective. All ranks find the same.
func (e *Engine) CanWindow(d Direct) bool {
	in, out := d.InWindow()
	return len(e.gates.at) > 0 && (in || out)
}

// CanCopy is CanWindow for RunCopies.
func (e *Engine) CanCopy(d Direct) bool {
	switch d {
	case AllGather, AllToAll, Gather, Scatter:
		return e.CanWindow(d)
	}
	return false
}

// gates are what kernels in windows need besides the Engine.
type gates struct {
	at     []uint64 // all ranks'
	epochs uintptr  // in device memory
	shape  func(d Direct, ranks, bytes int) windowShape
}

// A windowShape is how many blocks of how many threads move the tiles of so many
// bytes.
type windowShape struct{ blocks, threads, tile int }

// shapeOf is the windowShape of an operation, the same on all ranks.
func shapeOf(d Direct, ranks, bytes int) windowShape {
	total := bytes // that a rank moves
	switch d {
	case TwoShot, Reduce, Broadcast:
		total = bytes / ranks
	case AllGather, AllToAll, Gather, Scatter:
		total = bytes * ranks
	}
	const vector = 16
	x := windowShape{threads: maxThreads}
	x.blocks = max(1, min(MaxBlocks, (total+vector*x.threads-1)/(vector*x.threads)))
	x.tile = vector * x.threads * max(1, min(4, total/(x.blocks*vector*x.threads)))
	return x
}

// openGates looks where the gates are.
func (e *Engine) openGates() (err error) {
	at := e.links.Gates()
	if len(at) != e.ranks || e.ranks < 2 || e.ranks > MaxDirect {
		return nil
	}
	e.gates.at, e.gates.shape = at, shapeOf
	if e.gates.epochs, err = e.alloc(8 * MaxBlocks); err != nil {
		return err
	}
	if err := e.driver.MemsetD8Async(e.gates.epochs, 0, 8*MaxBlocks, e.stream); err != nil {
		return err
	}
	return e.driver.StreamSynchronize(e.stream)
}

// RunWindow queues a kernel on the job's stream that reads and writes the ranks'
// own memory. The arguments are those of RunDirect, without its limit on bytes;
// in and out say where in windows the buffers lie that InWindow asks for, the
// others are only the job's. The results have the same bits as those of RunDirect,
// and memory may be in place in the same ways.
//
// The kernel waits at its beginning until all ranks are at it, and at its end until
// all have finished, so before and behind it on the stream the memory is this
// rank's own. Ranks that run different things find out as with RunDirect.
func (e *Engine) RunWindow(j *Job, d Direct, in, out Place, root sched.Rank, bytes int) error {
	if !e.CanWindow(d) {
		return fmt.Errorf("%w: %v", ErrNoWindow, d)
	}
	if err := e.checkWindow(j, d, &in, &out, root, bytes); err != nil {
		return err
	}
	m, prog, err := e.module(j.Reducer, "window")
	if err != nil {
		return err
	}
	a := e.windowArgs(j, d, in, out, root, bytes)
	a.scalar, a.value = uint64(j.Scalar), prog.Value
	if prog.Finishes {
		a.finish = 1
	}
	l := e.lot(j, in, out)
	e.lay(a, &l, d, root, bytes)
	x := e.gates.shape(d, e.ranks, bytes)
	x.threads, x.blocks = min(x.threads, e.threads), min(x.blocks, e.mail.blocks)
	a.tile = uint32(roundUp(x.tile, 128))
	longest := uint64(0)
	for k := range a.moves {
		longest = max(longest, a.bytes[k])
	}
	a.tiles = uint32((longest + uint64(a.tile) - 1) / uint64(a.tile))
	if a.before == 0 { // where others look for it: a tile of a share is always the same block's
		a.tiles = uint32(roundUp(int(a.tiles), x.blocks))
	}
	e.frame.launch = cuda.Launch{Grid: cuda.Dim3{X: uint32(x.blocks)}, Block: cuda.Dim3{X: uint32(x.threads)}, Stream: j.Stream}
	return e.driver.LaunchKernel(m.run, &e.frame.launch, cuda.ArgsOf(a))
}

// windowArgs is what all kernels of an operation have.
func (e *Engine) windowArgs(j *Job, d Direct, in, out Place, root sched.Rank, bytes int) *windowArgs {
	a := &e.frame.window
	*a = windowArgs{comm: e.comm(j.Stamp), epochs: uint64(e.gates.epochs), pass: 2, before: 1, part: begins | ends}
	copy(a.gates[:], e.gates.at)
	what := uint64(d) | uint64(root)<<8
	if d == AllToAll && j.In.Ptr() == j.Out.Ptr() {
		what |= 1 << 63
	}
	a.setHash(what, uint64(bytes), uint64(in.Offset), uint64(out.Offset))
	return a
}

// RunCopies is RunWindow with copy engines, between two small kernels in which the
// ranks wait for each other. An all-to-all must not be in place.
func (e *Engine) RunCopies(j *Job, d Direct, in, out Place, root sched.Rank, bytes int) error {
	if !e.CanCopy(d) {
		return fmt.Errorf("%w by copy engines: %v", ErrNoWindow, d)
	}
	if err := e.checkWindow(j, d, &in, &out, root, bytes); err != nil {
		return err
	}
	if d == AllToAll && bytes > 0 && j.In.Ptr() == j.Out.Ptr() {
		return &ArgumentError{"out", int(e.dev), "copy engines have no all-to-all in place"}
	}
	m, _, err := e.module(nil, "window")
	if err != nil {
		return err
	}
	a := e.windowArgs(j, d, in, out, root, bytes)
	l := e.lot(j, in, out)
	e.lay(a, &l, d, root, bytes)
	moves := a.moves
	a.moves = 0
	if err := e.gate(m, j, a, begins); err != nil {
		return err
	}
	for k := range moves {
		if a.bytes[k] == 0 {
			continue
		}
		if err := e.driver.MemcpyAsync(uintptr(a.to[k]), uintptr(a.from[k]), int(a.bytes[k]), j.Stream); err != nil {
			return err
		}
	}
	return e.gate(m, j, a, ends)
}

// gate queues a kernel that passes a gate and does nothing else.
func (e *Engine) gate(m *module, j *Job, a *windowArgs, part uint32) error {
	a.pass, a.before, a.part = 1, 1, part
	e.frame.launch = cuda.Launch{Grid: cuda.Dim3{X: 1}, Block: cuda.Dim3{X: 32}, Stream: j.Stream}
	return e.driver.LaunchKernel(m.run, &e.frame.launch, cuda.ArgsOf(a))
}

// PrepareWindow is Prepare for RunWindow, and with nil for RunCopies.
func (e *Engine) PrepareWindow(r *kernels.Reducer) error {
	if len(e.gates.at) == 0 {
		return ErrNoWindow
	}
	_, _, err := e.module(r, "window")
	return err
}

// checkWindow looks at the memory, as checkDirect does, and that it lies where
// the places say. It leaves only those that are needed.
func (e *Engine) checkWindow(j *Job, d Direct, in, out *Place, root sched.Rank, bytes int) error {
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
	needIn, needOut := d.InWindow()
	if !needIn {
		*in = Place{}
	} else if reason := e.misplaced(*in, j.In, d != Gather || e.rank != root, bytes*repeat(d == ReduceScatter, e.ranks)); reason != "" {
		return &ArgumentError{"in", int(e.dev), reason}
	}
	own := d != Reduce && d != Scatter || d == Reduce && e.rank == root || d == Scatter && e.rank != root
	if !needOut {
		*out = Place{}
	} else if reason := e.misplaced(*out, j.Out, own, bytes*repeat(d == AllGather || d == AllToAll, e.ranks)); reason != "" {
		return &ArgumentError{"out", int(e.dev), reason}
	}
	return nil
}

// misplaced says what is wrong with the place of a buffer of n bytes; own tells
// that this rank's lies there too.
func (e *Engine) misplaced(p Place, r mem.Region, own bool, n int) string {
	w := p.Window
	switch {
	case w == nil:
		return "in no window: register it on all ranks"
	case len(w.At) != e.ranks:
		return fmt.Sprintf("window of %d ranks of %d", len(w.At), e.ranks)
	case p.Offset < 0 || n > w.Bytes-p.Offset:
		return fmt.Sprintf("%d bytes at %d of a window of %d", n, p.Offset, w.Bytes)
	case own && n > 0 && uint64(r.Ptr()) != w.At[e.rank]+uint64(p.Offset):
		return fmt.Sprintf("address %#x is not at %d of the window at %#x", r.Ptr(), p.Offset, w.At[e.rank])
	}
	return ""
}

func repeat(is bool, n int) int {
	if is {
		return n
	}
	return 1
}
