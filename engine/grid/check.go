package grid

import (
	"fmt"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
)

// An ArgumentError says that a kernel must not be given a job's memory.
type ArgumentError struct {
	Argument string // "in", "out", "scalar", or another name of checkNorm
	Device   int    // of the kernel
	Reason   string
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("grid: device %d: %s: %s", e.Device, e.Argument, e.Reason)
}

// check looks at a job's memory without asking the driver: it has to be the device's,
// aligned, and as long as the layout says. gpu.Device.Check finds whether it is
// allocated.
func (b *base) check(j *Job) error {
	shape, size := j.Program.shape, j.unit()
	return b.checkBuffers(j, misplaced(j.In, &j.InL, shape.In, size), misplaced(j.Out, &j.OutL, shape.Out, size))
}

// checkBuffers is nil if there is no reason against In and Out, nor against a job's scalar.
func (b *base) checkBuffers(j *Job, in, out string) error {
	switch {
	case in != "":
		return &ArgumentError{"in", int(b.dev), in}
	case out != "":
		return &ArgumentError{"out", int(b.dev), out}
	case j.Scalar%uintptr(j.unit()) != 0:
		return &ArgumentError{"scalar", int(b.dev), unaligned(j.Scalar, j.unit())}
	}
	return nil
}

func unaligned(at uintptr, size int) string {
	return fmt.Sprintf("address %#x is no multiple of the element's %d bytes", at, size)
}

// misplaced says what is wrong with a buffer, "" if nothing is. An empty buffer is
// allowed: a rank may take no part in it.
func misplaced(r mem.Region, l *engine.Layout, chunks, size int) string {
	switch {
	case r.Len() == 0:
		return ""
	case r.IsNil():
		return "null"
	case r.IsHost():
		return "host memory: register it and pass its device pointer"
	case r.Ptr()%uintptr(size) != 0:
		return unaligned(r.Ptr(), size)
	}
	if l.Off == nil {
		if n := min(l.Total, l.Chunk*chunks); n > r.Len() {
			return fmt.Sprintf("%d bytes, and its chunks take %d", r.Len(), n)
		}
		return ""
	}
	for c := range chunks {
		if off, n := l.Extent(c); off < 0 || n < 0 || off > r.Len()-n {
			return fmt.Sprintf("%d bytes, and chunk %d is %d bytes at %d", r.Len(), c, n, off)
		}
	}
	return ""
}

// checkDirect looks at the arguments of an operation by direct access, whose messages have n bytes.
func (b *base) checkDirect(j *Job, d Direct, root sched.Rank, n int) error {
	switch {
	case !d.Valid() || n < 0 || root < 0 || int(root) >= b.ranks:
		return fmt.Errorf("grid: %v of %d bytes, root %d of %d ranks", d, n, root, b.ranks)
	case d.Reduces() != (j.Reducer != nil):
		return fmt.Errorf("grid: %v: a reduction needs a reducer, and nothing else does", d)
	}
	size := j.unit()
	all, isRoot := n*b.ranks, b.rank == root
	in, out := n, n
	switch d {
	case Reduce:
		out = only(isRoot, n)
	case Broadcast:
		in = only(isRoot, n)
	case ReduceScatter:
		in = all
	case AllGather:
		out = all
	case AllToAll:
		in, out = all, all
	case Gather:
		out = only(isRoot, all)
	case Scatter:
		in = only(isRoot, all)
	}
	whyIn := outside(j.In, in, size)
	if whyIn == "" && n%size != 0 {
		whyIn = fmt.Sprintf("%d bytes are no multiple of the element's %d bytes", n, size)
	}
	return b.checkBuffers(j, whyIn, outside(j.Out, out, size))
}

func outside(r mem.Region, n, size int) string {
	switch {
	case n == 0:
		return ""
	case r.IsNil():
		return "null"
	case r.IsHost():
		return "host memory: register it and pass its device pointer"
	case r.Len() < n:
		return fmt.Sprintf("%d bytes, and the operation takes %d", r.Len(), n)
	case r.Ptr()%uintptr(size) != 0:
		return unaligned(r.Ptr(), size)
	}
	return ""
}
