package gpucomm

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// known says whether a call may begin. It remembers allocations and streams that the driver has
// confirmed to be of the rank's GPU, for to ask again for each call would take 1 µs. So if memory is
// freed by something else than gpu.Device.Free, a later call on it is refused for sure only with
// Config.CheckPointers.
type known struct {
	upkeep

	streamIDs bool // the driver tells the IDs of streams, since CUDA 12

	frees   uint64       // the device's count of frees when memory was confirmed
	memory  []mem.Region // whole allocations, sorted by address; they do not overlap
	streams []stream
}

func (k *known) open() error {
	version, err := k.Device.Driver().DriverGetVersion()
	k.streamIDs = version >= 12000
	return err
}

// A stream is told from others by its number: its handle may be given again when it is
// destroyed, and PerThread is another stream on each thread.
type stream struct {
	handle gpu.Stream
	id     uint64 // 0 if the driver does not tell
}

// maxMemory is how many allocations are remembered; when there are more, all are forgotten.
// maxKnown is how many streams are: a new one replaces the oldest.
const (
	maxMemory = 1024
	maxKnown  = 16
)

// admitted calls f for a call that may begin, with the device's context current.
func (k *known) admitted(c *call.Call, f func(entry) error) error {
	if err := k.ours(c); err != nil {
		return err
	}
	return k.with(c, func(seen cuda.Sight) error {
		e, err := k.admit(c, seen)
		if err != nil {
			return err
		}
		if err := k.Life.Begin(c, k); err != nil {
			return k.refusal(c, err)
		}
		return f(e)
	})
}

// refusal is why a call cannot begin. If graphs were launched after Close, it says so.
func (k *known) refusal(c *call.Call, err error) error {
	if _, late := k.upkeep.estate.trespass(); late != nil {
		return k.Life.Locate(c, 0, late, k)
	}
	return err
}

// with calls f on this OS thread with the device's context current. It asks the driver about the call's stream first,
// and gives f the answers; if another context was current, it asks again. If f fails with an error that is no
// *call.Error yet, the communicator fails, and the error names the call.
func (k *known) with(c *call.Call, f func(seen cuda.Sight) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	driver := k.Device.Driver()
	seen := cuda.Look(driver, c.Stream, k.streamIDs)
	var err error
	if seen.Context == k.net.Context() {
		err = f(seen)
	} else {
		err = cuda.Within(driver, k.net.Context(), func() error { return f(cuda.Look(driver, c.Stream, k.streamIDs)) })
	}
	if err == nil || placed(err) {
		return err
	}
	return k.Life.Fail(c, k.Life.Turn.Seq(), err, k)
}

// placed reports whether an error is a *call.Error already.
func placed(err error) bool {
	var has *call.Error
	return errors.As(err, &has)
}

// ours refuses memory of another GPU than the rank's, and all calls of a communicator that is suspended.
func (k *known) ours(c *call.Call) error {
	if k.upkeep.suspended {
		return k.Life.Locate(c, 0, errSuspended, k)
	}
	for _, r := range []mem.Region{c.In, c.Out} {
		if !r.IsHost() && r.Dev() != k.Device.Number() {
			return k.Life.Locate(c, 0, fmt.Errorf("%w: memory of device %d, but the rank's GPU is device %d", call.ErrInvalid,
				r.Dev(), k.Device.Number()), k)
		}
	}
	return nil
}

// admit has the driver confirm a call's memory and stream. The device's context is current. An
// error that wraps call.ErrInvalid leaves the communicator usable.
func (k *known) admit(c *call.Call, seen cuda.Sight) (entry, error) {
	if err := k.admitMemories(c); err != nil {
		return entry{}, err
	}
	return k.admitStream(c.Stream, seen)
}

// admitMemories has the driver confirm a call's memory.
func (k *known) admitMemories(c *call.Call) error {
	if k.CheckPointers {
		k.memory, k.streams = k.memory[:0], k.streams[:0]
	}
	if c.Kind != call.Barrier {
		size := c.Type.Size()
		in, out := c.Shape(k.Life.Rank, k.Life.Size)
		if err := k.admitMemory("In", c.In.Slice(0, in*size), size); err != nil {
			return err
		}
		if c.Norm != nil {
			err := k.admitMemory("In", c.In.Slice(0, in*size), 8)
			if err == nil {
				err = c.Memories(k.admitMemory)
			}
			return err
		}
		if err := k.admitMemory("Out", c.Out.Slice(0, out*size), size); err != nil {
			return err
		}
	}
	if at := c.Op.At; at != nil && c.Kind.Reduces() && !at.IsHost() {
		return k.admitMemory("Op.At", *at, 1)
	}
	return nil
}

// admitMemory has the driver confirm a region whose elements have size bytes.
func (k *known) admitMemory(name string, r mem.Region, size int) error {
	if r.Len() == 0 {
		return nil
	}
	if r.Ptr()%uintptr(size) != 0 {
		return fmt.Errorf("%w: %s: %#x on device %d is no multiple of the element's %d bytes: align it", call.ErrInvalid,
			name, r.Ptr(), k.Device.Number(), size)
	}
	if n := k.Device.Frees(); n != k.frees {
		k.frees, k.memory = n, k.memory[:0]
	}
	if k.has(r) {
		return nil
	}
	whole, err := k.Device.Check(r)
	if err != nil {
		var wrong *gpu.MemoryError
		if errors.As(err, &wrong) {
			err = fmt.Errorf("%w: %s: %w", call.ErrInvalid, name, err)
		}
		return err
	}
	k.add(whole)
	return nil
}

// after is the index of the first memory that ends after an address.
func (k *known) after(addr uintptr) int {
	i, n := 0, len(k.memory)
	for i < n {
		h := int(uint(i+n) >> 1)
		if m := &k.memory[h]; m.Ptr()+uintptr(m.Len()) <= addr {
			i = h + 1
		} else {
			n = h
		}
	}
	return i
}

// has reports whether a region lies in confirmed memory.
func (k *known) has(r mem.Region) bool {
	i := k.after(r.Ptr())
	return i < len(k.memory) && k.memory[i].Ptr() <= r.Ptr() &&
		r.Ptr()+uintptr(r.Len()) <= k.memory[i].Ptr()+uintptr(k.memory[i].Len())
}

// add remembers confirmed memory. What overlaps it has been freed since it was confirmed.
func (k *known) add(whole mem.Region) {
	k.memory = slices.DeleteFunc(k.memory, whole.Overlaps)
	if len(k.memory) == maxMemory {
		k.memory = k.memory[:0]
	}
	k.memory = slices.Insert(k.memory, k.after(whole.Ptr()), whole)
}

// admitStream has the driver confirm a stream, and finds out whether it is being captured. It asks the driver unless
// seen is of this stream.
func (k *known) admitStream(s gpu.Stream, seen cuda.Sight) (e entry, err error) {
	driver := k.Device.Driver()
	if seen.Context == 0 || seen.Stream != s {
		seen = cuda.Look(driver, s, k.streamIDs)
	}
	switch err := seen.Err; {
	case errors.Is(err, cuda.ErrStreamCaptureImplicit), errors.Is(err, cuda.ErrInvalidHandle),
		errors.Is(err, cuda.ErrInvalidContext), errors.Is(err, cuda.ErrContextIsDestroyed):
		return e, fmt.Errorf("%w: stream %#x: %w", call.ErrInvalid, s, err)
	case err != nil:
		return e, err
	case seen.Capture == cuda.CaptureInvalidated:
		return e, fmt.Errorf("%w: the capture of stream %#x on device %d is broken: end it, and look at the first error "+
			"since it began", call.ErrInvalid, s, k.Device.Number())
	}
	e.stream, e.captures = stream{s, seen.ID}, seen.Capture == cuda.CaptureActive
	if e.captures {
		if e.capture, err = driver.StreamGetCaptureInfo(s); err != nil {
			return e, err
		}
	}
	if s == 0 || s == gpu.Legacy || s == gpu.PerThread || slices.Contains(k.streams, e.stream) {
		return e, nil
	}
	ctx, err := driver.StreamGetCtx(s)
	if err != nil {
		return e, err
	}
	if ctx != k.net.Context() {
		return e, fmt.Errorf("%w: stream %#x is not of device %d's primary context: make it with device %d current",
			call.ErrInvalid, s, k.Device.Number(), k.Device.Number())
	}
	if len(k.streams) == maxKnown {
		k.streams = slices.Delete(k.streams, 0, 1)
	}
	k.streams = append(k.streams, e.stream)
	return e, nil
}
