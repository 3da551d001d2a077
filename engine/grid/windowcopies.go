// Collectives in windows by copy engines.

package grid

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/sched"
)

// CanCopy is CanWindow for RunCopies.
func (e *Engine) CanCopy(d Direct) bool { return d.ByCopies() && e.CanWindow(d) }

// RunCopies is RunWindow with copy engines, between two small kernels in which the ranks wait for each other, so copies
// take no multiprocessor. An all-to-all must not be in place. A broadcast of more than two ranks has a third such
// kernel: the root gives each rank a share, and then each gives its share to the others.
//
// An all-reduce begins with the job's Program, a reduce-scatter that leaves each rank's
// share in its own Out; the order of reduction is that program's. On 4 H200s the ring's
// reduce-scatter and the copies are faster than any kernel from 512 MiB.
//
// The job's stream must not be the legacy default stream. There a copy to another GPU
// waits for all that is queued on that GPU, also for the gate at which it waits for
// this rank.
//
// The copies are carried out even if the operation was aborted before the ranks met:
// the windows have to stay open until it has ended on the stream.
func (e *Engine) RunCopies(j *Job, d Direct, in, out WindowOffset, root sched.Rank, bytes int) error {
	if !e.CanCopy(d) {
		return fmt.Errorf("%w by copy engines: %v", ErrNoWindow, d)
	}
	if err := e.checkWindow(j, d, &in, &out, root, bytes); err != nil {
		return err
	}
	a := e.windowArgsOf(j, d, in, out, root, bytes)
	l := e.buffersOf(j, in, out)
	switch {
	case d == AllToAll && bytes > 0 && j.In.Ptr() == j.Out.Ptr():
		return &ArgumentError{"out", int(e.dev), "copy engines have no all-to-all in place"}
	case d == TwoShot:
		if err := e.scatter(j, bytes); err != nil {
			return err
		}
		e.layShares(a, l, bytes)
	case d == Broadcast:
		e.layRoot(a, l, int(root), bytes)
	default:
		e.layMoves(a, l, d, root, bytes)
	}
	copies := *a
	own, err := e.beside(&copies, j.Stream)
	if err != nil {
		return err
	}
	if d == TwoShot {
		a.fresh = 0
	}
	a.pass, a.part, a.moves = 1, beginsOp, 0
	if err := e.launchWindow(j, nil, a, gateShape, 0); err != nil {
		return err
	}
	if err := e.copy(&copies, j.Stream, own); err != nil {
		return err
	}
	a.part, a.fresh = 0, 0
	if d == Broadcast && e.ranks > 2 {
		if err := e.launchWindow(j, nil, a, gateShape, 0); err != nil {
			return err
		}
		e.layPassed(&copies, l, int(root), bytes)
		if err := e.copy(&copies, j.Stream, j.Stream); err != nil {
			return err
		}
	}
	a.part = endsOp
	return e.launchWindow(j, nil, a, gateShape, 0)
}

// scatter queues the reduce-scatter that an all-reduce begins with.
func (e *Engine) scatter(j *Job, bytes int) error {
	if p := j.Program; p == nil || p.shape.In != e.ranks || p.shape.Out != 1 {
		return errors.New("grid: an all-reduce by copy engines needs the program of a reduce-scatter")
	}
	// Load now: once a kernel is queued, loading may wait for it, and the kernel may wait
	// for a rank that is loading too.
	if err := errors.Join(e.Prepare(j.Reducer), e.PrepareWindow(nil)); err != nil {
		return err
	}
	at, length := share(bytes, int(e.rank), e.ranks)
	_, part := share(bytes, 0, e.ranks)
	half := &e.gates.half
	*half = *j
	half.In, half.InL = j.In.Slice(0, bytes), engine.Layout{Total: bytes, Chunk: int(part)}
	half.Out, half.OutL = j.Out.Slice(int(at), int(length)), engine.Layout{Total: int(length), Chunk: int(part)}
	return e.Run(half)
}

// aside are a stream and events with which a rank's copy to itself runs beside its
// copies to others, since another resource limits it. There is a second stream for
// captures. Both are made only for large windows: streams share the few hardware
// queues of a context, in which a kernel that waits holds up the work after it.
type aside struct {
	from       int // least bytes of such a copy
	streams    [2]cuda.Stream
	fork, join cuda.Event
}

// asideFrom is the least copy that runs beside the others.
const asideFrom = 4 << 20

// PrepareAside makes what RunCopies needs for windows of n bytes, before any kernel runs:
// making a stream may wait for kernels.
func (e *Engine) PrepareAside(n int) error {
	if n < e.gates.aside.from || !e.CanCopy(TwoShot) {
		return nil
	}
	for i := range e.gates.aside.streams {
		if _, err := e.asideStream(i); err != nil {
			return err
		}
	}
	return nil
}

// asideStream is one of the streams. It makes the stream and the events if needed.
func (e *Engine) asideStream(i int) (s cuda.Stream, err error) {
	x := &e.gates.aside
	if x.streams[i] != 0 {
		return x.streams[i], nil
	}
	err = e.quietly(func() (err error) {
		for _, v := range []*cuda.Event{&x.fork, &x.join} {
			if *v != 0 {
				continue
			}
			if *v, err = e.driver.EventCreate(cuda.EventDisableTiming); err != nil {
				return err
			}
		}
		x.streams[i], err = e.driver.StreamCreate(cuda.StreamNonBlocking, 0)
		return err
	})
	return x.streams[i], err
}

func (e *Engine) closeAside() error {
	var errs []error
	x := &e.gates.aside
	for _, s := range x.streams {
		if s != 0 {
			errs = append(errs, e.driver.StreamDestroy(s))
		}
	}
	for _, v := range []cuda.Event{x.fork, x.join} {
		if v != 0 {
			errs = append(errs, e.driver.EventDestroy(v))
		}
	}
	*x = aside{}
	return errors.Join(errs...)
}

// beside is the stream for the last of the moves, which is this rank's copy to itself
// if there is a move for each rank. It is s if that copy is small, or if another
// capture has the stream.
func (e *Engine) beside(a *windowArgs, s cuda.Stream) (cuda.Stream, error) {
	if a.moves < a.comm.ranks || a.bytes[a.moves-1] < uint64(e.gates.aside.from) {
		return s, nil
	}
	status, err := e.driver.StreamIsCapturing(s)
	if err != nil {
		return 0, err
	}
	if status != cuda.CaptureActive {
		return e.asideStream(0)
	}
	side, err := e.asideStream(1)
	if err != nil {
		return 0, err
	}
	if status, err = e.driver.StreamIsCapturing(side); err != nil || status == cuda.CaptureNone {
		return side, err
	}
	ours, err := e.driver.StreamGetCaptureInfo(s)
	if err != nil {
		return 0, err
	}
	theirs, err := e.driver.StreamGetCaptureInfo(side)
	if ours.ID != theirs.ID {
		return s, err
	}
	return side, err
}

// copy queues moves on s, the last one on own.
func (e *Engine) copy(a *windowArgs, s, own cuda.Stream) error {
	x, last := &e.gates.aside, int(a.moves)-1
	if own != s {
		if err := cuda.After(e.driver, own, s, x.fork); err != nil {
			return err
		}
		if err := e.move(a, last, own); err != nil {
			return err
		}
		last--
	}
	for k := range last + 1 {
		if err := e.move(a, k, s); err != nil {
			return err
		}
	}
	if own != s {
		return cuda.After(e.driver, s, own, x.join)
	}
	return nil
}

func (e *Engine) move(a *windowArgs, k int, s cuda.Stream) error {
	if a.bytes[k] == 0 {
		return nil
	}
	return e.driver.MemcpyAsync(uintptr(a.to[k]), uintptr(a.from[k]), int(a.bytes[k]), s)
}
