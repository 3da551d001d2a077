package bench

import (
	"context"
	"errors"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
)

// OpenMany opens a communicator that has g ranks for each rank of world: the
// process of world's rank p has ranks p·g to p·g+g-1, which it returns. o is
// completed with their ranks and, if m is not nil, GPUs. All ranks of world call
// it.
func OpenMany(ctx context.Context, world *ringo.Comm, g int, o ringo.Config, m *gpu.Machine) ([]*ringo.Comm, error) {
	var id bootstrap.ID
	if world.Rank() == 0 {
		made, err := ringo.NewID("")
		if err != nil {
			return nil, err
		}
		id = made
	}
	if err := ringo.Broadcast(world, id[:], 0); err != nil {
		return nil, err
	}
	comms, errs := make([]*ringo.Comm, g), make([]error, g)
	var wg sync.WaitGroup
	for i := range g {
		wg.Go(func() {
			o := o
			o.ID, o.Rank, o.Size = &id, world.Rank()*g+i, world.Size()*g
			o.Device = DeviceOf(m, o.Rank)
			comms[i], errs[i] = ringo.Open(ctx, o)
		})
	}
	wg.Wait()
	return comms, errors.Join(errs...)
}

// DeviceOf is the GPU of a rank: ranks take the GPUs of m in turn. It is nil if m is.
func DeviceOf(m *gpu.Machine, rank int) *gpu.Device {
	if m == nil {
		return nil
	}
	d, _ := m.Device(rank % m.Count())
	return d
}
