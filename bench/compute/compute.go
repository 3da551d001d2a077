// Package compute is work that keeps a GPU busy as a matrix product does, for benchmarks that
// run something beside it. A launch is waves of blocks: each block has a multiprocessor to
// itself, multiplies and adds in registers what it reads in shared memory, and ends after a
// fixed amount of that. Memory has nothing to do with it.
//
// The trap: the amount of work is fixed, not the time. What shares a multiprocessor with a
// block, or takes one away from the launch, makes it take longer; that is what is measured.
package compute

import (
	"errors"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A Kernel is the work, loaded on one GPU. Its methods are for one goroutine at a time.
type Kernel struct {
	dev    *gpu.Device
	module cuda.Module
	f      cuda.Function
	sums   uintptr // of the threads of a launch
	wave   int     // blocks that run at once
	shared int     // bytes of a block
	launch cuda.Launch
	args   args
}

// args are the kernel's parameters.
type args struct {
	sums   uint64
	rounds uint32
}

// MaxWaves is how many waves a launch may have.
const MaxWaves = 64

// New loads the kernel and allocates MaxWaves × multiprocessors KiB for its results.
func New(dev *gpu.Device) (*Kernel, error) {
	k := &Kernel{dev: dev}
	err := dev.With(func() (err error) {
		d := dev.Driver()
		if k.wave, err = d.DeviceGetAttribute(cuda.AttrMultiprocessorCount, dev.Handle()); err != nil {
			return err
		}
		// With all of the shared memory a block is alone on its multiprocessor, as those of
		// matrix products are.
		if k.shared, err = d.DeviceGetAttribute(cuda.AttrMaxSharedPerBlockOptin, dev.Handle()); err != nil {
			return err
		}
		if k.module, err = d.ModuleLoadData([]byte(text())); err != nil {
			return err
		}
		if k.f, err = d.ModuleGetFunction(k.module, "compute"); err != nil {
			return err
		}
		if err = d.FuncSetAttribute(k.f, cuda.FuncMaxDynamicShared, k.shared); err != nil {
			return err
		}
		k.sums, err = d.MemAlloc(4 * threads * k.wave * MaxWaves)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

// Wave is how many blocks of the kernel run at once: the GPU's multiprocessors.
func (k *Kernel) Wave() int { return k.wave }

// Launch queues waves of blocks, 1 to MaxWaves, that do the same rounds each.
func (k *Kernel) Launch(s gpu.Stream, waves, rounds int) error {
	return k.Blocks(s, waves*k.wave, rounds)
}

// Blocks is Launch for a number of blocks.
func (k *Kernel) Blocks(s gpu.Stream, blocks, rounds int) error {
	k.args = args{uint64(k.sums), uint32(rounds)}
	k.launch = cuda.Launch{Grid: cuda.Dim3{X: uint32(blocks)}, Block: cuda.Dim3{X: threads}, Shared: k.shared, Stream: s}
	return k.dev.With(func() error { return k.dev.Driver().LaunchKernel(k.f, &k.launch, cuda.ArgsOf(&k.args)) })
}

// Close gives back what New has taken. Launches have to be done.
func (k *Kernel) Close() error {
	return k.dev.With(func() error {
		var errs []error
		if k.sums != 0 {
			errs = append(errs, k.dev.Driver().MemFree(k.sums))
		}
		if k.module != 0 {
			errs = append(errs, k.dev.Driver().ModuleUnload(k.module))
		}
		k.sums, k.module = 0, 0
		return errors.Join(errs...)
	})
}
