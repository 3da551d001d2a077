package bench

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
)

// A Cost is the cost of a communicator on the GPU of rank 0 up to its first result.
// First includes compiling kernels, unless the driver has them in its cache;
// CUDA_CACHE_DISABLE=1 turns the cache off.
type Cost struct {
	Open  float64 `json:"open_ms"`
	First float64 `json:"first_ms"` // an all-reduce of 8 bytes, from the call to the result
	// Memory is the GPU memory that all ranks on it have taken by then, kernels included.
	Memory float64 `json:"gpu_mib"`
}

func (c *Cost) String() string {
	return fmt.Sprintf("opened in %.0f ms, first operation in %.1f ms, %.1f MiB of GPU memory", c.Open, c.First, c.Memory)
}

// A costMeter measures a Cost.
type costMeter struct {
	dev   *gpu.Device // nil for host memory
	free  int
	start time.Time
	cost  Cost
}

// newCostMeter begins to measure, before communicators are opened.
func newCostMeter(dev *gpu.Device) (*costMeter, error) {
	m := &costMeter{dev: dev, start: time.Now()}
	if dev == nil {
		return m, nil
	}
	if _, err := dev.Context(); err != nil { // the context's memory is not the communicator's
		return nil, err
	}
	var err error
	m.free, _, err = dev.Memory()
	m.start = time.Now()
	return m, err
}

// opened notes that the communicators are open.
func (m *costMeter) opened() { m.cost.Open = milliseconds(time.Since(m.start)) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// first carries out the first operation of a rank on its GPU; m is rank 0's, nil
// elsewhere.
func first(c *ringo.Comm, ctl *control, m *costMeter) (err error) {
	dev := c.Device()
	r, err := dev.Alloc(8)
	if err != nil {
		return err
	}
	s, err := dev.NewStream()
	if err != nil {
		return errors.Join(err, dev.Free(r))
	}
	defer func() { err = errors.Join(err, dev.DestroyStream(s), dev.Free(r)) }()
	if err := dev.Write(r, make([]byte, 8)); err != nil {
		return err
	}
	if err := ctl.barrier(); err != nil {
		return err
	}
	start := time.Now()
	if err := c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: r, Out: r, Count: 4, Type: ringo.BFloat16, Op: ringo.Sum,
		Stream: s}); err != nil {
		return err
	}
	if err := c.Synchronize(s); err != nil {
		return err
	}
	if m != nil {
		m.cost.First = milliseconds(time.Since(start))
		free, _, err := dev.Memory()
		if err != nil {
			return err
		}
		m.cost.Memory = float64(m.free-free) / (1 << 20)
	}
	return ctl.barrier() // no rank allocates anything else before rank 0 has looked
}
