// Package device combines memory on GPUs with the kernels of kernels/cuda, for packages
// gpucomm and engine/grid: kernels.Reducer.CombineAll for device memory, with the same
// bits. The trap: launches do not check that memory is allocated, see CheckMemory. The package is
// part of a communicator; nothing here is promised to other modules.
package device

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/kernels"
	"github.com/ringo-go/ringo/kernels/ptx"
)

// A Combiner holds the kernels of a context. It may be used by any number of
// goroutines.
type Combiner struct {
	driver     cuda.Driver
	ctx        cuda.Context
	device     cuda.Device
	peers      map[int]bool // devices whose memory kernels may use
	capability int          // 90 for compute capability 9.0
	sms        int          // multiprocessors
	text       func(ptx.Name) ([]byte, error)
	store      *cuda.Store // set by Borrow; nil if the Combiner has one user

	mu      sync.Mutex
	closed  bool                 // guarded by mu
	modules map[ptx.Name]*module // loaded so far; SM of the key is 0; guarded by mu
}

// A module is code on the device. It does not change after it is loaded.
type module struct {
	name           ptx.Name // with the SM of the loaded variant
	handle         cuda.Module
	combine, plain kernel
}

// A kernel is a function and the limits of its launches.
type kernel struct {
	f         cuda.Function
	threads   int // of a block, at most
	maxBlocks int
}

// ErrClosed is the error of a closed Combiner.
var ErrClosed = errors.New("device: the combiner is closed")

// New makes a Combiner for a context. peers are the devices, besides its own, whose
// memory the context can access (CtxEnablePeerAccess). Nothing is loaded yet.
func New(d cuda.Driver, ctx cuda.Context, peers ...cuda.Device) (*Combiner, error) {
	c := &Combiner{driver: d, ctx: ctx, peers: map[int]bool{}, text: ptx.Text, modules: map[ptx.Name]*module{}}
	err := cuda.Quietly(d, ctx, func() (err error) {
		if c.device, err = d.CtxGetDevice(); err != nil {
			return err
		}
		if c.capability, err = cuda.Capability(d, c.device); err != nil {
			return err
		}
		c.sms, err = d.DeviceGetAttribute(cuda.AttrMultiprocessorCount, c.device)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	for _, p := range append(peers, c.device) {
		c.peers[int(p)] = true
	}
	return c, nil
}

// Close unloads the kernels. Work that uses them has to be done, and graphs
// with these kernels must not be launched again. A second Close does nothing; a
// borrowed Combiner must be closed once by each user.
func (c *Combiner) Close() error {
	if c.store != nil {
		return c.store.Close()
	}
	return c.unload()
}

func (c *Combiner) unload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return cuda.Quietly(c.driver, c.ctx, func() error {
		var errs []error
		for _, m := range c.modules {
			errs = append(errs, c.driver.ModuleUnload(m.handle))
		}
		c.modules = nil
		return errors.Join(errs...)
	})
}

// A Kernel combines elements of one type by one reduction. It is a value and
// belongs to its Combiner.
type Kernel struct {
	c       *Combiner
	m       *module
	t       kernels.DataType
	program kernels.Program
}

// Kernel finds the kernel of a reduction. The first time it loads and compiles
// the module, about 0.1 s; later it takes some tens of nanoseconds and does not
// allocate. The errors are *kernels.InvalidError, *cuda.Error, *RefusedError and
// ErrClosed.
func (c *Combiner) Kernel(r *kernels.Reducer) (Kernel, error) {
	p, ok := r.Program()
	if !ok {
		return Kernel{}, &kernels.InvalidError{Type: r.Type(), Op: kernels.RedOp{Kind: kernels.KindUser},
			Reason: "a function in Go cannot run on a GPU"}
	}
	key := ptx.Name{Type: r.Type().String(), Op: p.Op}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return Kernel{}, ErrClosed
	}
	m := c.modules[key]
	if m == nil {
		var err error
		if m, err = c.load(key); err != nil {
			return Kernel{}, err
		}
		c.modules[key] = m
	}
	return Kernel{c: c, m: m, t: r.Type(), program: p}, nil
}
