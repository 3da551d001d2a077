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

// known is memory and streams that the driver has confirmed to be of the rank's GPU. It is
// not asked again for each call, which would take 1 µs. So if memory is freed by something
// else than gpu.Device.Free, a later call on it is refused for sure only with
// Config.CheckPointers.
type known struct {
	frees   uint64 // the device's count of frees when memory was confirmed
	memory  []mem.Region
	streams []stream
}

// A stream is told from others by its number: its handle may be given again when it is
// destroyed, and PerThread is another stream on each thread.
type stream struct {
	handle gpu.Stream
	id     uint64
}

// maxKnown is how many allocations and how many streams are remembered. A new one replaces the
// oldest.
const maxKnown = 32

// ours refuses memory of another GPU than the rank's.
func (g *Comm) ours(c *call.Call) error {
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
		if err := g.admitMemory("Op.At", *at, 1); err != nil {
			return err
		}
	}
	return g.admitStream(c.Stream)
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
	for _, k := range g.known.memory {
		if r.Ptr() >= k.Ptr() && r.Ptr()+uintptr(r.Len()) <= k.Ptr()+uintptr(k.Len()) {
			return nil
		}
	}
	if err := g.Device.Check(r); err != nil {
		var wrong *gpu.MemoryError
		if errors.As(err, &wrong) {
			err = fmt.Errorf("%w: %s: %w", call.ErrInvalid, name, err)
		}
		return err
	}
	g.known.memory = remember(g.known.memory, g.allocationOf(r))
	return nil
}

// allocationOf is the allocation that a region lies in: its other parts need not be looked
// at. It is the region itself where that lies in several.
func (g *Comm) allocationOf(r mem.Region) mem.Region {
	base, n, err := g.Device.Driver().MemGetAddressRange(r.Ptr())
	if err != nil || r.Ptr()+uintptr(r.Len()) > base+uintptr(n) {
		return r
	}
	return mem.Device(r.Dev(), base, n)
}

// admitStream has the driver confirm a stream, and finds out whether it is being captured.
func (g *Comm) admitStream(s gpu.Stream) error {
	driver := g.Device.Driver()
	status, err := driver.StreamIsCapturing(s)
	switch {
	case errors.Is(err, cuda.ErrStreamCaptureImplicit), errors.Is(err, cuda.ErrInvalidHandle), errors.Is(err, cuda.ErrInvalidContext), errors.Is(err, cuda.ErrContextIsDestroyed):
		return fmt.Errorf("%w: stream %#x: %w", call.ErrInvalid, s, err)
	case err != nil:
		return err
	case status == cuda.CaptureInvalidated:
		return fmt.Errorf("%w: the capture of stream %#x on device %d is broken: end it, and look at the first error since it began", call.ErrInvalid, s, g.Device.Number())
	}
	g.capture, g.captures = cuda.CaptureInfo{}, status == cuda.CaptureActive
	if g.captures {
		if g.capture, err = driver.StreamGetCaptureInfo(s); err != nil {
			return err
		}
	}
	if g.streamID = 0; g.streamIDs {
		if g.streamID, err = driver.StreamGetId(s); err != nil {
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

// remember appends to a list of at most maxKnown.
func remember[T any](list []T, x T) []T {
	if len(list) == maxKnown {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, x)
}
