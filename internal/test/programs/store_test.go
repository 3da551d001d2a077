package programs

import (
	"errors"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/mem"
)

// A store has memory of a GPU, or of the host if that is nil, until the end: to free it waits for kernels.
type store struct {
	d       *gpu.Device
	regions []mem.Region
}

// alloc is memory with content.
func (s *store) alloc(b []byte) (mem.Region, error) {
	if s.d == nil || len(b) == 0 {
		return mem.Host(b), nil
	}
	return s.allocWith(s.d.AllocMapped, b)
}

func (s *store) allocWith(alloc func(int) (mem.Region, error), b []byte) (mem.Region, error) {
	x, err := alloc(len(b))
	if err != nil {
		return x, err
	}
	s.regions = append(s.regions, x)
	return x, s.d.Write(x, b)
}

// sync waits for the GPU's part in what c has queued.
func (s *store) sync(c *ringo.Comm) error {
	if s.d == nil {
		return nil
	}
	return c.Synchronize(0)
}

func (s *store) free() (err error) {
	for _, x := range s.regions {
		err = errors.Join(err, s.d.Free(x))
	}
	return err
}
