// Collectives in windows by copy engines.

package grid

import (
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/sched"
)

// copyEngines carry out collectives in windows by copies.
type copyEngines struct {
	*windows
	aside aside
	half  Job        // the reduce-scatter of an all-reduce
	moves windowArgs // of the current operation
}

func (c *copyEngines) open(*Options) error {
	c.aside.from = asideFrom
	return nil
}

// CanCopy is CanWindow for RunCopies.
func (c *copyEngines) CanCopy(d Direct) bool { return d.ByCopies() && c.CanWindow(d) }

// RunCopies is RunWindow with copy engines, between two small kernels in which the ranks wait for each other, so copies
// take no multiprocessor. An all-to-all must not be in place. A broadcast of more than two ranks has a third such
// kernel: the root gives each rank a share, and then each gives its share to the others.
//
// The ScatterJob of an all-reduce comes before it, and leaves each rank's share in its own Out; the order of reduction
// is that job's. On 4 H200s the ring's reduce-scatter and the copies are faster than any kernel from 512 MiB.
//
// The job's stream must not be the legacy default stream. There a copy to another GPU
// waits for all that is queued on that GPU, also for the gate at which it waits for
// this rank.
//
// The copies are carried out even if the operation was aborted before the ranks met:
// the windows have to stay open until it has ended on the stream.
func (c *copyEngines) RunCopies(j *Job, d Direct, in, out WindowOffset, root sched.Rank, bytes int) error {
	if err := c.checkCopies(j, d, &in, &out, root, bytes); err != nil {
		return err
	}
	a := c.argsOf(j, d, in, out, root, bytes)
	l := c.buffersOf(j, in, out)
	switch d {
	case TwoShot:
		a.layShares(&l, bytes)
	case Broadcast:
		a.layRoot(&l, int(root), bytes)
	default:
		a.layMoves(&l, d, int(root), bytes)
	}
	c.moves = *a
	own, err := c.beside(j.Stream)
	if err != nil {
		return err
	}
	if d == TwoShot { // the ScatterJob has the call's number
		a.fresh = 0
	}
	a.pass, a.part, a.moves = 1, beginsOp, 0
	if err := c.launchWindow(j, nil, a, gateShape, 0); err != nil {
		return err
	}
	if err := c.copy(j.Stream, own); err != nil {
		return err
	}
	a.part, a.fresh = 0, 0
	if d == Broadcast && c.ranks > 2 {
		if err := c.launchWindow(j, nil, a, gateShape, 0); err != nil {
			return err
		}
		c.moves.layPassed(&l, int(root), bytes)
		if err := c.copy(j.Stream, j.Stream); err != nil {
			return err
		}
	}
	a.part = endsOp
	return c.launchWindow(j, nil, a, gateShape, 0)
}

func (c *copyEngines) checkCopies(j *Job, d Direct, in, out *WindowOffset, root sched.Rank, bytes int) error {
	switch {
	case !c.CanCopy(d):
		return fmt.Errorf("%w by copy engines: %v", ErrNoWindow, d)
	case d == AllToAll && bytes > 0 && j.In.Ptr() == j.Out.Ptr():
		return &ArgumentError{"out", int(c.dev), "copy engines have no all-to-all in place"}
	}
	return c.checkWindow(j, d, in, out, root, bytes)
}

// ScatterJob returns the reduce-scatter that an all-reduce by RunCopies begins with, by the job's Program. The caller
// runs it before, and loads all kernels before that: a kernel that runs may hold up a load, and wait for a rank that
// loads. The job is good until the next one.
func (c *copyEngines) ScatterJob(j *Job, in, out WindowOffset, bytes int) (*Job, error) {
	if err := c.checkCopies(j, TwoShot, &in, &out, 0, bytes); err != nil {
		return nil, err
	}
	if p := j.Program; p == nil || p.shape.In != c.ranks || p.shape.Out != 1 {
		return nil, errors.New("grid: an all-reduce by copy engines needs the program of a reduce-scatter")
	}
	at, length := share(bytes, int(c.rank), c.ranks)
	_, part := share(bytes, 0, c.ranks)
	half := &c.half
	*half = *j
	half.In, half.InL = j.In.Slice(0, bytes), engine.Layout{Total: bytes, Chunk: int(part)}
	half.Out, half.OutL = j.Out.Slice(int(at), int(length)), engine.Layout{Total: int(length), Chunk: int(part)}
	return half, nil
}

// aside are a stream and events with which a rank's copy to itself runs beside its
// copies to others, since another resource limits it. There is a second stream for
// captures. Both are made only for large windows: streams share the few hardware
// queues of a context, in which a kernel that waits holds up the work after it.
type aside struct {
	from    int // least bytes of such a copy
	streams [2]cuda.Stream
	events  [2]cuda.Event // fork and join
}

// asideFrom is the least copy that runs beside the others.
const asideFrom = 4 << 20

// PrepareAside makes what RunCopies needs for windows of n bytes, before any kernel runs:
// making a stream may wait for kernels.
func (c *copyEngines) PrepareAside(n int) error {
	x := &c.aside
	if n < x.from || !c.CanCopy(TwoShot) || x.streams[1] != 0 {
		return nil
	}
	return c.quietly(func() (err error) {
		for i := range x.events {
			if x.events[i] == 0 {
				x.events[i], err = c.driver.EventCreate(cuda.EventDisableTiming)
			}
			if err == nil && x.streams[i] == 0 {
				x.streams[i], err = c.driver.StreamCreate(cuda.StreamNonBlocking, 0)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *copyEngines) close() error {
	x := c.aside
	c.aside = aside{}
	return c.quietly(func() error {
		var errs []error
		for i := range x.events {
			if x.streams[i] != 0 {
				errs = append(errs, c.driver.StreamDestroy(x.streams[i]))
			}
			if x.events[i] != 0 {
				errs = append(errs, c.driver.EventDestroy(x.events[i]))
			}
		}
		return errors.Join(errs...)
	})
}

// beside is the stream for the last of the moves, which is this rank's copy to itself
// if there is a move for each rank. It is s if that copy is small, or if another
// capture has the stream, or if PrepareAside has made none.
func (c *copyEngines) beside(s cuda.Stream) (cuda.Stream, error) {
	a, side := &c.moves, c.aside.streams[1]
	if side == 0 || a.moves < a.comm.ranks || a.bytes[a.moves-1] < uint64(c.aside.from) {
		return s, nil
	}
	status, err := c.driver.StreamIsCapturing(s)
	if err != nil || status != cuda.CaptureActive {
		return c.aside.streams[0], err
	}
	if status, err = c.driver.StreamIsCapturing(side); err != nil || status == cuda.CaptureNone {
		return side, err
	}
	ours, err := c.driver.StreamGetCaptureInfo(s)
	if err != nil {
		return 0, err
	}
	theirs, err := c.driver.StreamGetCaptureInfo(side)
	if ours.ID != theirs.ID {
		return s, err
	}
	return side, err
}

// copy queues the moves on s, the last one on own.
func (c *copyEngines) copy(s, own cuda.Stream) error {
	x, last := &c.aside, int(c.moves.moves)-1
	if own != s {
		if err := cuda.After(c.driver, own, s, x.events[0]); err != nil {
			return err
		}
		if err := c.move(last, own); err != nil {
			return err
		}
		last--
	}
	for k := range last + 1 {
		if err := c.move(k, s); err != nil {
			return err
		}
	}
	if own != s {
		return cuda.After(c.driver, s, own, x.events[1])
	}
	return nil
}

func (c *copyEngines) move(k int, s cuda.Stream) error {
	a := &c.moves
	if a.bytes[k] == 0 {
		return nil
	}
	return c.driver.MemcpyAsync(uintptr(a.to[k]), uintptr(a.from[k]), int(a.bytes[k]), s)
}
