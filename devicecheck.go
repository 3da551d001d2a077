package ringo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// An acquaintance is what the driver has vouched for: memory and streams of
// the rank's GPU. Asking again for each call would take a µs, so memory that was
// freed by others than gpu.Device.Free is found for sure only if it is new to the
// communicator, or with Config.CheckPointers.
type acquaintance struct {
	frees   uint64 // of the device, when memory was looked at
	memory  []mem.Region
	streams []gpu.Stream
}

// acquaintances is how many are remembered of each; later ones take the place of
// those that came first.
const acquaintances = 16

// admit finds what the driver holds against a call: its memory, its stream, and
// whether that is being captured, which it remembers. The device's context is
// current. Errors that wrap ErrInvalid are of this call alone.
func (d *device) admit(c *Comm, call *Call) error {
	if c.cfg.CheckPointers {
		d.known.memory, d.known.streams = d.known.memory[:0], d.known.streams[:0]
	}
	if call.Kind != KindBarrier {
		size := call.Type.Size()
		in, out := call.shape(c.rank, c.size)
		if err := d.admitMemory("In", call.In.Slice(0, in*size), size); err != nil {
			return err
		}
		if err := d.admitMemory("Out", call.Out.Slice(0, out*size), size); err != nil {
			return err
		}
	}
	if at := call.Op.At; at != nil && call.Kind.Reduces() && !at.IsHost() {
		if err := d.admitMemory("Op.At", *at, 1); err != nil {
			return err
		}
	}
	return d.admitStream(call.Stream)
}

// refuse is why a call was not admitted. Unless the driver itself fails, the
// communicator stays usable: no rank has heard of the call.
func (c *Comm) refuse(call *Call, cause error) *Error {
	if errors.Is(cause, ErrInvalid) {
		return c.errorOf(call, 0, cause)
	}
	return c.fail(call, cause)
}

// placed gives an error its place unless it has one.
func (c *Comm) placed(call *Call, err error) error {
	var has *Error
	if err == nil || errors.As(err, &has) {
		return err
	}
	return c.fail(call, err)
}

func (d *device) admitMemory(name string, r mem.Region, size int) error {
	if r.Len() == 0 {
		return nil
	}
	if r.Ptr()%uintptr(size) != 0 {
		return fmt.Errorf("%w: %s: %#x on device %d is no multiple of the element's %d bytes: align it", ErrInvalid, name, r.Ptr(), d.gpu.Number(), size)
	}
	if n := d.gpu.Frees(); n != d.known.frees {
		d.known.frees, d.known.memory = n, d.known.memory[:0]
	}
	for _, k := range d.known.memory {
		if r.Ptr() >= k.Ptr() && r.Ptr()+uintptr(r.Len()) <= k.Ptr()+uintptr(k.Len()) {
			return nil
		}
	}
	if err := d.gpu.Check(r); err != nil {
		var wrong *gpu.MemoryError
		if errors.As(err, &wrong) {
			err = fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
		}
		return err
	}
	d.known.memory = remember(d.known.memory, r)
	return nil
}

func (d *device) admitStream(s gpu.Stream) error {
	driver := d.gpu.Driver()
	status, err := driver.StreamIsCapturing(s)
	switch {
	case errors.Is(err, cuda.ErrStreamCaptureImplicit), errors.Is(err, cuda.ErrInvalidHandle), errors.Is(err, cuda.ErrInvalidContext), errors.Is(err, cuda.ErrContextIsDestroyed):
		return fmt.Errorf("%w: stream %#x: %w", ErrInvalid, s, err)
	case err != nil:
		return err
	case status == cuda.CaptureInvalidated:
		return fmt.Errorf("%w: the capture of stream %#x on device %d is broken: end it, and look at the first error since it began", ErrInvalid, s, d.gpu.Number())
	}
	d.captures = status == cuda.CaptureActive
	if s == 0 || s == gpu.Legacy || s == gpu.PerThread || slices.Contains(d.known.streams, s) {
		return nil
	}
	ctx, err := driver.StreamGetCtx(s)
	if err != nil {
		return err
	}
	if ctx != d.net.ctx {
		return fmt.Errorf("%w: stream %#x is not of device %d's primary context: make it with device %d current", ErrInvalid, s, d.gpu.Number(), d.gpu.Number())
	}
	d.known.streams = remember(d.known.streams, s)
	return nil
}

func remember[T any](list []T, x T) []T {
	if len(list) == acquaintances {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, x)
}
