package grid

import (
	"fmt"

	"github.com/ringo-go/ringo/engine"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
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

// check looks at memory without asking the driver: it has to be the device's,
// aligned, and as long as the layout says. gpu.Device.Check finds whether it is
// allocated.
func (j *Job) check(dev cuda.Device) error {
	shape, size := j.Program.shape, 1
	if j.Reducer != nil {
		size = j.Reducer.Type().Size()
	}
	if reason := misplaced(j.In, &j.InL, shape.In, size); reason != "" {
		return &ArgumentError{"in", int(dev), reason}
	}
	if reason := misplaced(j.Out, &j.OutL, shape.Out, size); reason != "" {
		return &ArgumentError{"out", int(dev), reason}
	}
	if j.Scalar%uintptr(size) != 0 {
		return &ArgumentError{"scalar", int(dev),
			fmt.Sprintf("address %#x is no multiple of the element's %d bytes", j.Scalar, size)}
	}
	return nil
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
		return fmt.Sprintf("address %#x is no multiple of the element's %d bytes", r.Ptr(), size)
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
