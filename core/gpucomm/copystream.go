package gpucomm

import (
	"errors"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A copyStream carries out copies between GPUs that are queued on the legacy default
// stream. On that stream such a copy waits for everything that was queued before it on
// both GPUs (CUDA C++ Programming Guide, "Peer-to-Peer Memory Copy"). That may include a
// kernel of a peer which waits for this rank, and then neither would end.
type copyStream struct {
	stream     gpu.Stream
	fork, join gpu.Event
}

// open makes the stream, unless there is one. Register calls it, while no kernel runs: making a stream may wait for
// kernels.
func (x *copyStream) open(d *gpu.Device, ctx cuda.Context) (err error) {
	if x.stream != 0 {
		return nil
	}
	if x.stream, err = d.NewStream(); err != nil {
		return err
	}
	for _, e := range []*gpu.Event{&x.fork, &x.join} {
		if *e, err = newEvent(d.Driver(), ctx); err != nil {
			return err
		}
	}
	return nil
}

// enter returns the stream for copies in place of a legacy default stream s, and any other s as it is. What is queued
// between enter and leave keeps its place in the order of s.
func (x *copyStream) enter(d cuda.Driver, s gpu.Stream) (gpu.Stream, error) {
	if s != 0 && s != gpu.Legacy {
		return s, nil
	}
	return x.stream, cuda.After(d, x.stream, s, x.fork)
}

// leave has s go on behind the copies that were queued.
func (x *copyStream) leave(d cuda.Driver, s gpu.Stream) error {
	if s != 0 && s != gpu.Legacy {
		return nil
	}
	return cuda.After(d, s, x.stream, x.join)
}

// close gives back what open made. The context is current.
func (x *copyStream) close(d cuda.Driver) error {
	var errs []error
	for _, e := range []gpu.Event{x.fork, x.join} {
		if e != 0 {
			errs = append(errs, d.EventDestroy(e))
		}
	}
	if x.stream != 0 {
		errs = append(errs, d.StreamDestroy(x.stream))
	}
	*x = copyStream{}
	return errors.Join(errs...)
}
