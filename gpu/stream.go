package gpu

import "github.com/ringo-go/ringo/internal/cuda"

// A Stream is a queue of work on a device: a CUstream. The zero Stream is the
// legacy default stream, which waits for all streams but those of NewStream.
type Stream = cuda.Stream

// Streams that every device has.
const (
	Legacy    Stream = cuda.StreamLegacy
	PerThread Stream = cuda.StreamPerThread
)

// NewStream makes a stream that does not wait for the legacy default stream.
func (d *Device) NewStream() (s Stream, err error) {
	err = d.With(func() error {
		s, err = d.driver.StreamCreate(cuda.StreamNonBlocking, 0)
		return err
	})
	return s, err
}

// DestroyStream ends a stream once its work is done.
func (d *Device) DestroyStream(s Stream) error {
	return d.With(func() error { return d.driver.StreamDestroy(s) })
}

// Synchronize waits until all work of the stream is done.
func (d *Device) Synchronize(s Stream) error {
	return d.With(func() error { return d.driver.StreamSynchronize(s) })
}

// Set queues a fill of n bytes at addr with the byte v.
func (d *Device) Set(addr uintptr, v byte, n int, s Stream) error {
	return d.With(func() error { return d.driver.MemsetD8Async(addr, v, n, s) })
}

// An Event is a point in a stream, for timing and for order among streams.
type Event = cuda.Event

// NewEvent makes an event, until DestroyEvent.
func (d *Device) NewEvent() (e Event, err error) {
	err = d.With(func() error {
		e, err = d.driver.EventCreate(cuda.EventDefault)
		return err
	})
	return e, err
}

// DestroyEvent ends an event.
func (d *Device) DestroyEvent(e Event) error {
	return d.With(func() error { return d.driver.EventDestroy(e) })
}

// Record puts the event at the stream's end.
func (d *Device) Record(e Event, s Stream) error {
	return d.With(func() error { return d.driver.EventRecord(e, s) })
}

// WaitEvent has the stream wait for an event, which may be another device's.
func (d *Device) WaitEvent(s Stream, e Event) error {
	return d.With(func() error { return d.driver.StreamWaitEvent(s, e, 0) })
}

// Elapsed is the milliseconds between two events, both of which must have happened.
func (d *Device) Elapsed(start, end Event) (ms float32, err error) {
	err = d.With(func() error {
		ms, err = d.driver.EventElapsedTime(start, end)
		return err
	})
	return ms, err
}

// A Graph is recorded work that can be repeated at little cost.
type Graph struct {
	d *Device
	x cuda.GraphExec
}

// Capture records the work that f queues on the stream instead of carrying it out.
// All ranks of a communicator have to capture their part of an operation.
func (d *Device) Capture(s Stream, f func() error) (*Graph, error) {
	g := &Graph{d: d}
	err := d.With(func() error {
		if err := d.driver.StreamBeginCapture(s, cuda.CaptureThreadLocal); err != nil {
			return err
		}
		failed := f()
		recorded, err := d.driver.StreamEndCapture(s)
		if failed != nil {
			if err == nil {
				d.driver.GraphDestroy(recorded)
			}
			return failed
		}
		if err != nil {
			return err
		}
		defer d.driver.GraphDestroy(recorded)
		ctx, err := d.Context()
		if err != nil {
			return err
		}
		return cuda.Quietly(d.driver, ctx, func() error { // this thread may be capturing for another GPU
			g.x, err = d.driver.GraphInstantiate(recorded, 0)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Launch queues the work on a stream.
func (g *Graph) Launch(s Stream) error {
	return g.d.With(func() error { return g.d.driver.GraphLaunch(g.x, s) })
}

// Close destroys the graph. Launches that are under way finish.
func (g *Graph) Close() error {
	return g.d.With(func() error { return g.d.driver.GraphExecDestroy(g.x) })
}
