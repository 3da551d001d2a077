package gpucomm

import (
	"errors"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A detour is a stream for copies between GPUs that are called for on the legacy
// default stream. There such a copy begins when all that was queued on either GPU is
// done (CUDA C++ Programming Guide, "Peer-to-Peer Memory Copy"): so also a peer's
// kernel that waits for this rank, and neither would ever end.
type detour struct {
	stream     gpu.Stream
	fork, join gpu.Event
}

// open makes the stream, if there is none. It is called when windows are made, for
// it should not happen beside kernels that wait.
func (x *detour) open(d *gpu.Device) (err error) {
	if x.stream != 0 {
		return nil
	}
	if x.stream, err = d.NewStream(); err != nil {
		return err
	}
	return d.With(func() error {
		for _, e := range []*gpu.Event{&x.fork, &x.join} {
			if *e, err = d.Driver().EventCreate(eventForOrder); err != nil {
				return err
			}
		}
		return nil
	})
}

// take calls f with the stream in place of a legacy default stream, and with any other
// as it is. The order on the stream that was asked for stays.
func (x *detour) take(d cuda.Driver, s gpu.Stream, f func(gpu.Stream) error) error {
	if s != 0 && s != gpu.Legacy {
		return f(s)
	}
	if err := cuda.After(d, x.stream, s, x.fork); err != nil {
		return err
	}
	if err := f(x.stream); err != nil {
		return err
	}
	return cuda.After(d, s, x.stream, x.join)
}

func (x *detour) close(d *gpu.Device) error {
	var errs []error
	for _, e := range []gpu.Event{x.fork, x.join} {
		if e != 0 {
			errs = append(errs, d.DestroyEvent(e))
		}
	}
	if x.stream != 0 {
		errs = append(errs, d.DestroyStream(x.stream))
	}
	*x = detour{}
	return errors.Join(errs...)
}
