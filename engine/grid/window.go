package grid

import (
	"errors"
	"fmt"

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

// InWindow reports which buffers of a collective have to be in a window, also on
// ranks that have no such buffer of their own: the place is then that of the
// ranks which have. An all-reduce is TwoShot.
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
}

// openGates looks where the gates are.
func (e *Engine) openGates() (err error) {
	at := e.links.Gates()
	if len(at) != e.ranks || e.ranks < 2 || e.ranks > MaxDirect {
		return nil
	}
	e.gates.at = at
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
	return e.checkWindow(j, d, in, out, root, bytes)
}

// RunCopies is RunWindow with copy engines, between two small kernels in which the
// ranks wait for each other. An all-to-all must not be in place.
func (e *Engine) RunCopies(j *Job, d Direct, in, out Place, root sched.Rank, bytes int) error {
	if !e.CanCopy(d) {
		return fmt.Errorf("%w by copy engines: %v", ErrNoWindow, d)
	}
	return e.checkWindow(j, d, in, out, root, bytes)
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
// the places say.
func (e *Engine) checkWindow(j *Job, d Direct, in, out Place, root sched.Rank, bytes int) error {
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
	n, isRoot := bytes, e.rank == root
	inAll, outAll := d == ReduceScatter || d == AllToAll, d == AllGather || d == AllToAll
	needIn, needOut := d.InWindow()
	if reason := e.misplace(in, j.In, needIn, true, n*repeat(inAll, e.ranks)); reason != "" {
		return &ArgumentError{"in", int(e.dev), reason}
	}
	own := isRoot || d != Reduce
	if reason := e.misplace(out, j.Out, needOut, own, n*repeat(outAll, e.ranks)); reason != "" {
		return &ArgumentError{"out", int(e.dev), reason}
	}
	return nil
}

// misplace says what is wrong with the place of a buffer of n bytes; own tells that
// this rank has one.
func (e *Engine) misplace(p Place, r mem.Region, needed, own bool, n int) string {
	w := p.Window
	switch {
	case !needed:
		return ""
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
