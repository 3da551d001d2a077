package gpucomm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// known is allocations and streams that the driver has confirmed to be of the rank's GPU. It is
// not asked again for each call, which would take 1 µs. So if memory is freed by something
// else than gpu.Device.Free, a later call on it is refused for sure only with
// Config.CheckPointers.
type known struct {
	frees   uint64       // the device's count of frees when memory was confirmed
	memory  []mem.Region // whole allocations, sorted by address; they do not overlap
	streams []stream
}

// A stream is told from others by its number: its handle may be given again when it is
// destroyed, and PerThread is another stream on each thread.
type stream struct {
	handle gpu.Stream
	id     uint64
}

// maxMemory is how many allocations are remembered; when there are more, all are forgotten.
// maxKnown is how many streams are: a new one replaces the oldest.
const (
	maxMemory = 1024
	maxKnown  = 16
)

// ours refuses memory of another GPU than the rank's, and all calls of a communicator that is suspended.
func (g *Comm) ours(c *call.Call) error {
	if g.suspended {
		return g.Life.Place(c, 0, errSuspended, g)
	}
	for _, r := range []mem.Region{c.In, c.Out} {
		if !r.IsHost() && r.Dev() != g.Device.Number() {
			return g.Life.Place(c, 0, fmt.Errorf("%w: memory of device %d, but the rank's GPU is device %d", call.ErrInvalid, r.Dev(), g.Device.Number()), g)
		}
	}
	return nil
}

// admit has the driver confirm a call's memory and stream, and finds out whether the stream
// is being captured. The device's context is current. An error that wraps call.ErrInvalid
// leaves the communicator usable.
func (g *Comm) admit(c *call.Call) error {
	if err := g.admitMemories(c); err != nil {
		return err
	}
	return g.admitStream(c.Stream)
}

// admitMemories has the driver confirm a call's memory.
func (g *Comm) admitMemories(c *call.Call) error {
	if g.CheckPointers {
		g.known.memory, g.known.streams = g.known.memory[:0], g.known.streams[:0]
	}
	if c.Kind != call.Barrier {
		size := c.Type.Size()
		in, out := c.Shape(g.Life.Rank, g.Life.Size)
		if err := g.admitMemory("In", c.In.Slice(0, in*size), size); err != nil {
			return err
		}
		if err := g.admitMemory("Out", c.Out.Slice(0, out*size), size); err != nil {
			return err
		}
	}
	if at := c.Op.At; at != nil && c.Kind.Reduces() && !at.IsHost() {
		return g.admitMemory("Op.At", *at, 1)
	}
	return nil
}

// admitMemory has the driver confirm a region whose elements have size bytes.
func (g *Comm) admitMemory(name string, r mem.Region, size int) error {
	if r.Len() == 0 {
		return nil
	}
	if r.Ptr()%uintptr(size) != 0 {
		return fmt.Errorf("%w: %s: %#x on device %d is no multiple of the element's %d bytes: align it", call.ErrInvalid, name, r.Ptr(), g.Device.Number(), size)
	}
	if n := g.Device.Frees(); n != g.known.frees {
		g.known.frees, g.known.memory = n, g.known.memory[:0]
	}
	if g.known.has(r) {
		return nil
	}
	whole, err := g.Device.Check(r)
	if err != nil {
		var wrong *gpu.MemoryError
		if errors.As(err, &wrong) {
			err = fmt.Errorf("%w: %s: %w", call.ErrInvalid, name, err)
		}
		return err
	}
	g.known.add(whole)
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
	return i < len(k.memory) && k.memory[i].Ptr() <= r.Ptr() && r.Ptr()+uintptr(r.Len()) <= k.memory[i].Ptr()+uintptr(k.memory[i].Len())
}

// add remembers confirmed memory. What overlaps it has been freed since it was confirmed.
func (k *known) add(whole mem.Region) {
	k.memory = slices.DeleteFunc(k.memory, whole.Overlaps)
	if len(k.memory) == maxMemory {
		k.memory = k.memory[:0]
	}
	k.memory = slices.Insert(k.memory, k.after(whole.Ptr()), whole)
}

// admitStream has the driver confirm a stream, and finds out whether it is being captured.
func (g *Comm) admitStream(s gpu.Stream) error {
	driver := g.Device.Driver()
	seen, err := g.see(s)
	switch {
	case errors.Is(err, cuda.ErrStreamCaptureImplicit), errors.Is(err, cuda.ErrInvalidHandle), errors.Is(err, cuda.ErrInvalidContext), errors.Is(err, cuda.ErrContextIsDestroyed):
		return fmt.Errorf("%w: stream %#x: %w", call.ErrInvalid, s, err)
	case err != nil:
		return err
	case seen.Capture == cuda.CaptureInvalidated:
		return fmt.Errorf("%w: the capture of stream %#x on device %d is broken: end it, and look at the first error since it began", call.ErrInvalid, s, g.Device.Number())
	}
	g.streamID, g.capture, g.captures = seen.ID, cuda.CaptureInfo{}, seen.Capture == cuda.CaptureActive
	if g.captures {
		if g.capture, err = driver.StreamGetCaptureInfo(s); err != nil {
			return err
		}
	}
	this := stream{s, g.streamID}
	if s == 0 || s == gpu.Legacy || s == gpu.PerThread || slices.Contains(g.known.streams, this) {
		return nil
	}
	ctx, err := driver.StreamGetCtx(s)
	if err != nil {
		return err
	}
	if ctx != g.net.Context() {
		return fmt.Errorf("%w: stream %#x is not of device %d's primary context: make it with device %d current", call.ErrInvalid, s, g.Device.Number(), g.Device.Number())
	}
	g.known.streams = remember(g.known.streams, this)
	return nil
}

// see asks the driver about a stream, unless with has done so.
func (g *Comm) see(s gpu.Stream) (cuda.Sight, error) {
	if !g.sees || g.seen.Stream != s {
		g.seen = cuda.Look(g.Device.Driver(), s, g.streamIDs)
	}
	g.sees = false
	return g.seen, g.seen.Err
}

// remember appends to a list of at most maxKnown.
func remember[T any](list []T, x T) []T {
	if len(list) == maxKnown {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, x)
}
