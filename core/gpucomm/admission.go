package gpucomm

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/life"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// An admission says whether calls may begin. It remembers allocations and streams that the driver has confirmed to be
// of the rank's GPU: to ask again for each call would take 1 µs. So if memory is freed by something else than
// gpu.Device.Free, a later call on it is refused for sure only with Config.CheckPointers.
type admission struct {
	life   *life.Life
	device *gpu.Device
	driver cuda.Driver
	ctx    cuda.Context
	estate *estate
	path   life.Path

	asks      bool // Config.CheckPointers
	streamIDs bool // the driver tells the IDs of streams, since CUDA 12
	closed    bool // the communicator
	suspended bool // see Footprint

	frees   uint64       // the device's count of frees when memory was confirmed
	memory  []mem.Region // whole allocations, sorted by address; they do not overlap
	streams []stream
}

func newAdmission(o *Options, e *estate, ctx cuda.Context, path life.Path) (*admission, error) {
	version, err := e.driver.DriverGetVersion()
	return &admission{life: o.Life, device: o.Device, driver: e.driver, ctx: ctx, estate: e, path: path,
		asks: o.CheckPointers, streamIDs: version >= 12000}, err
}

// A visit is the time in which calls are checked and queued: on one OS thread, with the device's context current.
type visit struct {
	begun  bool
	pushed bool       // another context was current
	seen   cuda.Sight // of the first call's stream
}

// maxMemory is how many allocations are remembered; when there are more, all are forgotten.
// maxKnown is how many streams are: a new one replaces the oldest.
const (
	maxMemory = 1024
	maxKnown  = 16
)

// enter begins a visit of calls, the first of which is on a stream. The caller calls leave in any case. It asks the
// driver about the stream first; if another context was current, it asks again.
func (a *admission) enter(v *visit, s gpu.Stream) error {
	runtime.LockOSThread()
	v.begun, v.seen = true, cuda.Look(a.driver, s, a.streamIDs)
	if v.seen.Context == a.ctx {
		return nil
	}
	if err := a.driver.CtxPushCurrent(a.ctx); err != nil {
		return err
	}
	v.pushed, v.seen = true, cuda.Look(a.driver, s, a.streamIDs)
	return nil
}

// leave ends a visit. An error that is no *call.Error yet ends the communicator, and names the call, which has the
// number seq.
func (a *admission) leave(v *visit, c *call.Call, seq uint32, err error) error {
	if v.pushed {
		if _, e := a.driver.CtxPopCurrent(); err == nil {
			err = e
		}
	}
	if v.begun {
		runtime.UnlockOSThread()
	}
	if err == nil || placed(err) {
		return err
	}
	return a.life.Fail(c, seq, err, a.path)
}

// admit lets calls begin, all or none, and says where the first is queued. If they are one operation, they have to be
// part of the same graph.
func (a *admission) admit(v *visit, calls []*call.Call, one bool) (first entry, err error) {
	for _, c := range calls {
		if err := a.ours(c); err != nil {
			return first, err
		}
	}
	for i, c := range calls {
		if err := a.admitMemories(c); err != nil {
			return first, err
		}
		if i > 0 && c.Stream == calls[i-1].Stream {
			continue
		}
		switch e, err := a.admitStream(c.Stream, v.seen); {
		case err != nil:
			return first, err
		case i == 0:
			first = e
		case one && e.capture.ID != first.capture.ID:
			return first, fmt.Errorf("%w: the sends and receives of a group are on streams %#x and %#x, which are not in the "+
				"same capture", call.ErrInvalid, calls[0].Stream, c.Stream)
		}
	}
	return first, a.begin(calls[0])
}

// begin starts the time of a call. If graphs were launched after Close, the error says so.
func (a *admission) begin(c *call.Call) error {
	err := a.life.Begin(c, a.path)
	if err == nil {
		return nil
	}
	if _, late := a.estate.trespass(); late != nil {
		return a.life.Locate(c, 0, late, a.path)
	}
	return err
}

// placed reports whether an error is a *call.Error already.
func placed(err error) bool {
	var has *call.Error
	return errors.As(err, &has)
}

// errSuspended refuses calls between Suspend and Resume of a Footprint.
var errSuspended = fmt.Errorf("%w: the communicator is suspended: call Resume on all ranks", call.ErrInvalid)

// ours refuses memory of another GPU than the rank's, and all calls of a communicator that is suspended.
func (a *admission) ours(c *call.Call) error {
	if a.suspended {
		return a.life.Locate(c, 0, errSuspended, a.path)
	}
	for _, r := range []mem.Region{c.In, c.Out} {
		if !r.IsHost() && r.Dev() != a.device.Number() {
			return a.life.Locate(c, 0, fmt.Errorf("%w: memory of device %d, but the rank's GPU is device %d", call.ErrInvalid,
				r.Dev(), a.device.Number()), a.path)
		}
	}
	return nil
}

// admitMemories has the driver confirm a call's memory.
func (a *admission) admitMemories(c *call.Call) error {
	if a.asks {
		a.memory, a.streams = a.memory[:0], a.streams[:0]
	}
	if c.Kind != call.Barrier {
		size := c.Type.Size()
		in, out := c.Shape(a.life.Rank, a.life.Size)
		if err := a.admitMemory("In", c.In.Slice(0, in*size), size); err != nil {
			return err
		}
		if c.Norm != nil {
			err := a.admitMemory("In", c.In.Slice(0, in*size), 8)
			if err == nil {
				err = c.Memories(a.admitMemory)
			}
			return err
		}
		if err := a.admitMemory("Out", c.Out.Slice(0, out*size), size); err != nil {
			return err
		}
	}
	if at := c.Op.At; at != nil && c.Kind.Reduces() && !at.IsHost() {
		return a.admitMemory("Op.At", *at, 1)
	}
	return nil
}

// admitMemory has the driver confirm a region whose elements have size bytes.
func (a *admission) admitMemory(name string, r mem.Region, size int) error {
	if r.Len() == 0 {
		return nil
	}
	if r.Ptr()%uintptr(size) != 0 {
		return fmt.Errorf("%w: %s: %#x on device %d is no multiple of the element's %d bytes: align it", call.ErrInvalid,
			name, r.Ptr(), a.device.Number(), size)
	}
	if n := a.device.Frees(); n != a.frees {
		a.frees, a.memory = n, a.memory[:0]
	}
	if a.has(r) {
		return nil
	}
	whole, err := a.device.Check(r)
	if err != nil {
		var wrong *gpu.MemoryError
		if errors.As(err, &wrong) {
			err = fmt.Errorf("%w: %s: %w", call.ErrInvalid, name, err)
		}
		return err
	}
	a.add(whole)
	return nil
}

// after is the index of the first memory that ends after an address.
func (a *admission) after(addr uintptr) int {
	i, n := 0, len(a.memory)
	for i < n {
		h := int(uint(i+n) >> 1)
		if m := &a.memory[h]; m.Ptr()+uintptr(m.Len()) <= addr {
			i = h + 1
		} else {
			n = h
		}
	}
	return i
}

// has reports whether a region lies in confirmed memory.
func (a *admission) has(r mem.Region) bool {
	i := a.after(r.Ptr())
	return i < len(a.memory) && a.memory[i].Ptr() <= r.Ptr() &&
		r.Ptr()+uintptr(r.Len()) <= a.memory[i].Ptr()+uintptr(a.memory[i].Len())
}

// add remembers confirmed memory. What overlaps it has been freed since it was confirmed.
func (a *admission) add(whole mem.Region) {
	a.memory = slices.DeleteFunc(a.memory, whole.Overlaps)
	if len(a.memory) == maxMemory {
		a.memory = a.memory[:0]
	}
	a.memory = slices.Insert(a.memory, a.after(whole.Ptr()), whole)
}

// admitStream has the driver confirm a stream, and finds out whether it is being captured. It asks the driver unless
// seen is of this stream.
func (a *admission) admitStream(s gpu.Stream, seen cuda.Sight) (e entry, err error) {
	if seen.Context == 0 || seen.Stream != s {
		seen = cuda.Look(a.driver, s, a.streamIDs)
	}
	switch err := seen.Err; {
	case errors.Is(err, cuda.ErrStreamCaptureImplicit), errors.Is(err, cuda.ErrInvalidHandle),
		errors.Is(err, cuda.ErrInvalidContext), errors.Is(err, cuda.ErrContextIsDestroyed):
		return e, fmt.Errorf("%w: stream %#x: %w", call.ErrInvalid, s, err)
	case err != nil:
		return e, err
	case seen.Capture == cuda.CaptureInvalidated:
		return e, fmt.Errorf("%w: the capture of stream %#x on device %d is broken: end it, and look at the first error "+
			"since it began", call.ErrInvalid, s, a.device.Number())
	}
	e.stream, e.captures = stream{s, seen.ID}, seen.Capture == cuda.CaptureActive
	if e.captures {
		if e.capture, err = a.driver.StreamGetCaptureInfo(s); err != nil {
			return e, err
		}
	}
	if s == 0 || s == gpu.Legacy || s == gpu.PerThread || slices.Contains(a.streams, e.stream) {
		return e, nil
	}
	ctx, err := a.driver.StreamGetCtx(s)
	if err != nil {
		return e, err
	}
	if ctx != a.ctx {
		return e, fmt.Errorf("%w: stream %#x is not of device %d's primary context: make it with device %d current",
			call.ErrInvalid, s, a.device.Number(), a.device.Number())
	}
	if len(a.streams) == maxKnown {
		a.streams = slices.Delete(a.streams, 0, 1)
	}
	a.streams = append(a.streams, e.stream)
	return e, nil
}
