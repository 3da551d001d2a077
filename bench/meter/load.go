package meter

import (
	"errors"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A Load is work that keeps a GPU busy as a matrix product does, for benchmarks that run something beside
// it. A launch is waves of blocks: each block has a multiprocessor to itself, multiplies and adds numbers
// of shared memory in registers, and ends after a fixed amount of work. It takes no bandwidth of GPU
// memory. A Load's methods are for one goroutine at a time.
//
// The trap: the amount of work is fixed, not the time. Other work that shares a multiprocessor with
// a block, or takes one away from the launch, makes the launch longer; that is what is measured.
type Load struct {
	dev    *gpu.Device
	module cuda.Module
	f      cuda.Function
	sums   uintptr // of the threads of a launch
	wave   int     // blocks that run at once
	shared int     // bytes of a block
	launch cuda.Launch
	args   loadArgs
}

// loadArgs are the parameters of multiply in kernels/cuda/meter.cu.
type loadArgs struct {
	sums   uint64
	rounds uint32
}

// MaxWaves is how many waves a launch may have.
const MaxWaves = 64

// NewLoad loads the kernel and allocates MaxWaves × multiprocessors KiB for its results.
func NewLoad(dev *gpu.Device) (*Load, error) {
	l := &Load{dev: dev}
	err := dev.With(func() (err error) {
		d := dev.Driver()
		if l.wave, err = d.DeviceGetAttribute(cuda.AttrMultiprocessorCount, dev.Handle()); err != nil {
			return err
		}
		// With all of the shared memory a block is alone on its multiprocessor, as the blocks
		// of matrix products are.
		if l.shared, err = d.DeviceGetAttribute(cuda.AttrMaxSharedPerBlockOptin, dev.Handle()); err != nil {
			return err
		}
		if l.module, err = loadModule(d); err != nil {
			return err
		}
		if l.f, err = d.ModuleGetFunction(l.module, "multiply"); err != nil {
			return err
		}
		if err = d.FuncSetAttribute(l.f, cuda.FuncMaxDynamicShared, l.shared); err != nil {
			return err
		}
		l.sums, err = d.MemAlloc(4 * threads * l.wave * MaxWaves)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Wave is how many blocks of the kernel run at once: the GPU's multiprocessors.
func (l *Load) Wave() int { return l.wave }

// Launch queues waves of blocks, 1 to MaxWaves. Each block does the given rounds of work.
func (l *Load) Launch(s gpu.Stream, waves, rounds int) error {
	return l.Blocks(s, waves*l.wave, rounds)
}

// Blocks is Launch for a number of blocks.
func (l *Load) Blocks(s gpu.Stream, blocks, rounds int) error {
	return l.launchBlocks(s, blocks, rounds, l.shared)
}

// launchBlocks is Blocks with the given bytes of shared memory for each block.
func (l *Load) launchBlocks(s gpu.Stream, blocks, rounds, shared int) error {
	l.args = loadArgs{uint64(l.sums), uint32(rounds)}
	l.launch = cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: threads}, Shared: shared, Stream: s}
	return l.dev.With(func() error { return l.dev.Driver().LaunchKernel(l.f, &l.launch, cuda.ArgsOf(&l.args)) })
}

// Close gives back what NewLoad has taken. Launches have to be done.
func (l *Load) Close() error {
	return l.dev.With(func() error {
		var errs []error
		if l.sums != 0 {
			errs = append(errs, l.dev.Driver().MemFree(l.sums))
		}
		if l.module != 0 {
			errs = append(errs, l.dev.Driver().ModuleUnload(l.module))
		}
		l.sums, l.module = 0, 0
		return errors.Join(errs...)
	})
}
