// Package gomlx lets GoMLX's programs communicate by Ringo, over goroutines, processes and hosts: a Backend adds the
// collective operations of GoMLX's backend interface to a backend without them, such as the one in pure Go.
//
//	backend, err := gomlx.Open(ctx, "", ringo.Config{}) // started by: ringo run -np 4 -- PROGRAM
//	optimizer, err := gomlx.DataParallel(optimizers.Adam().Done())
//	trainer := train.NewTrainer(backend, model, modelGraph, loss, optimizer, nil, nil)
//	backend.Distribute(trainer)
//
// Then each process trains with its own part of each batch, and all have the same weights, bit for bit. When a process
// dies, the others go on by Backend.Recover.
//
// The trap: all ranks execute the same programs with collectives in the same order.
package gomlx

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/distributed"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
)

// BackendName is the name of this backend in GoMLX. With GOMLX_BACKEND=ringo each process opens the communicator of its
// environment (ringo run, torchrun, mpirun); with ringo:4 four goroutines of this process are four devices. Both
// compute in pure Go.
const BackendName = "ringo"

// goConfig has the backend in pure Go execute one operation at a time. Ranks run in parallel anyway, and in GoMLX 0.26
// the race detector finds a data race between operations in parallel. Large matrix products still use all cores.
const goConfig = "ops_sequential"

func init() {
	backends.Register(BackendName, func(config string) (backends.Backend, error) {
		return Open(context.Background(), config, ringo.Config{})
	})
}

// A Backend is a backend of GoMLX with collectives. Its devices are ranks of a communicator. Either this process has
// all ranks, each in a goroutine: then GoMLX's meshes and replica groups name these devices. Or this process has one
// rank: then GoMLX's mesh has one device, as GoMLX wants the inputs of all devices of a mesh in one process, and a
// collective over that mesh is one of all ranks of all processes.
type Backend struct {
	inner     backends.Backend
	mesh      *distributed.DeviceMesh
	processes bool // the other ranks are other processes

	turn sync.Mutex // held by the program that communicates

	mu    sync.Mutex
	comms []*ringo.Comm            // by device
	parts []map[string]*ringo.Comm // by device and replica groups
	done  bool
}

var _ backends.Backend = (*Backend)(nil)

// A buffer is a buffer of the backend below, with its device. inner is nil once it is freed.
type buffer struct {
	inner  backends.Buffer
	device backends.DeviceNum
}

// New adds collectives over comms to a backend whose buffers are host memory. comms are this process' only rank, or all
// ranks of a communicator in their order (ringo.OpenLocal). The Backend closes comms.
func New(inner backends.Backend, comms ...*ringo.Comm) (*Backend, error) {
	if inner == nil || !inner.HasSharedBuffers() {
		return nil, fmt.Errorf("gomlx: a backend is needed whose buffers are host memory, as simplego's are: %w",
			ringo.ErrUnsupported)
	}
	b := &Backend{inner: inner, processes: len(comms) == 1}
	if err := b.use(comms); err != nil {
		return nil, err
	}
	mesh, err := distributed.NewDeviceMesh([]int{len(comms)}, []string{"replica"})
	if err != nil {
		return nil, err
	}
	b.mesh = mesh
	return b, nil
}

// Open makes a Backend that computes in pure Go. devices is the number of its devices, which are goroutines; if devices
// is "", this process is one rank of its environment's communicator (ringo.OpenEnv).
func Open(ctx context.Context, devices string, cfg ringo.Config) (*Backend, error) {
	inner, err := simplego.New(goConfig)
	if err != nil {
		return nil, err
	}
	var comms []*ringo.Comm
	if devices = strings.TrimSpace(devices); devices == "" {
		c, err := ringo.OpenEnv(ctx, cfg)
		if err != nil {
			return nil, err
		}
		comms = []*ringo.Comm{c}
	} else {
		n, err := strconv.Atoi(devices)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("gomlx: %q is no number of devices; write %s:4, or %s alone for the ranks of the "+
				"environment: %w",
				devices, BackendName, BackendName, ringo.ErrInvalid)
		}
		if comms, err = ringo.OpenLocal(n, cfg); err != nil {
			return nil, err
		}
	}
	b, err := New(inner, comms...)
	if err != nil {
		for _, c := range comms {
			err = errors.Join(err, c.Close())
		}
		return nil, err
	}
	return b, nil
}

// use makes comms the communicators of the devices.
func (b *Backend) use(comms []*ringo.Comm) error {
	for i, c := range comms {
		if c == nil || len(comms) > 1 && (c.Rank() != i || c.Size() != len(comms)) {
			return fmt.Errorf("gomlx: communicator %d of %d: want one rank, or all ranks of one communicator in their order: %w",
				i, len(comms), ringo.ErrInvalid)
		}
	}
	if len(comms) == 0 {
		return fmt.Errorf("gomlx: no communicator: %w", ringo.ErrInvalid)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.comms = comms
	b.parts = make([]map[string]*ringo.Comm, len(comms))
	for i := range b.parts {
		b.parts[i] = map[string]*ringo.Comm{}
	}
	return nil
}

// Comm is the communicator of a device of this process; the device is 0 if each process has one rank. After Shrink and
// Grow it is another communicator.
func (b *Backend) Comm(device int) *ringo.Comm {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.comms[device]
}

// Mesh is the mesh of this process' devices, with one axis "replica". All executors that share a context.Context need
// the same mesh.
func (b *Backend) Mesh() *distributed.DeviceMesh { return b.mesh }

// Shrink goes on with the remaining ranks after one has died, as ringo's Comm.Shrink does: each of them calls Shrink,
// and then Agree. Compiled programs stay good, except programs with an AllGather, which must be built anew. Shrink is
// for ranks that are processes; ranks of one process die together.
func (b *Backend) Shrink(ctx context.Context) error {
	return b.regroup("Shrink", func(old *ringo.Comm) (*ringo.Comm, error) { return old.Shrink(ctx) })
}

// Grow takes in new ranks up to size ranks, as ringo's Comm.Grow does. All ranks call Grow, one of them with an ID and
// the others with nil. With that ID the new ranks Open a communicator of the new size and make a Backend of it. Then
// all ranks call Agree.
func (b *Backend) Grow(ctx context.Context, id *bootstrap.ID, size int) error {
	return b.regroup("Grow", func(old *ringo.Comm) (*ringo.Comm, error) { return old.Grow(ctx, id, size) })
}

// regroup replaces the communicator.
func (b *Backend) regroup(name string, change func(old *ringo.Comm) (*ringo.Comm, error)) error {
	if !b.processes {
		return fmt.Errorf("gomlx: %s: all %d ranks are this process: %w", name, len(b.comms), ringo.ErrUnsupported)
	}
	b.turn.Lock()
	defer b.turn.Unlock()
	old := b.Comm(0)
	next, err := change(old)
	if err != nil {
		return err
	}
	if err := b.use([]*ringo.Comm{next}); err != nil {
		return err
	}
	return old.Close()
}

// Close closes the communicators. A second call does nothing.
func (b *Backend) Close() error {
	b.mu.Lock()
	comms, parts := b.comms, b.parts
	if b.done {
		comms = nil
	}
	b.done = true
	b.mu.Unlock()
	errs := make([]error, len(comms))
	var all sync.WaitGroup
	for i, c := range comms {
		all.Go(func() {
			for _, p := range parts[i] {
				if p != nil {
					errs[i] = errors.Join(errs[i], p.Close())
				}
			}
			errs[i] = errors.Join(errs[i], c.Close())
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Name implements backends.Backend.
func (b *Backend) Name() string { return fmt.Sprintf("%s over %s", BackendName, b.inner.Name()) }

// String implements backends.Backend.
func (b *Backend) String() string { return BackendName }

// Description implements backends.Backend.
func (b *Backend) Description() string {
	c := b.Comm(0)
	if b.processes {
		return fmt.Sprintf("%s, rank %d of %d", b.inner.Description(), c.Rank(), c.Size())
	}
	return fmt.Sprintf("%s, %d ranks", b.inner.Description(), c.Size())
}

// NumDevices implements backends.Backend: it is the number of ranks of this process.
func (b *Backend) NumDevices() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.comms)
}

// DeviceDescription implements backends.Backend.
func (b *Backend) DeviceDescription(device backends.DeviceNum) string {
	if device < 0 || int(device) >= b.NumDevices() {
		return fmt.Sprintf("no device %d", device)
	}
	c := b.Comm(int(device))
	return fmt.Sprintf("rank %d of %d", c.Rank(), c.Size())
}

// Capabilities implements backends.Backend: those of the backend below, and the collectives.
func (b *Backend) Capabilities() backends.Capabilities {
	c := b.inner.Capabilities().Clone()
	c.Operations[backends.OpTypeAllReduce] = true
	c.Operations[backends.OpTypeAllGather] = true
	c.Operations[backends.OpTypeCollectiveBroadcast] = true
	return c
}

// Builder implements backends.Backend. It has all Collectives.
func (b *Backend) Builder(name string) backends.Builder { return newBuilder(b, name) }

// Finalize implements backends.Backend: Close, and the end of the backend below.
func (b *Backend) Finalize() {
	_ = b.Close() // a caller who wants the error calls Close before
	b.inner.Finalize()
}

// IsFinalized implements backends.Backend.
func (b *Backend) IsFinalized() bool { return b.inner.IsFinalized() }

// below is x as a buffer of this backend that has not been freed.
func below(x backends.Buffer) (*buffer, error) {
	if b, ok := x.(*buffer); ok && b != nil && b.inner != nil {
		return b, nil
	}
	return nil, fmt.Errorf("gomlx: %T is no buffer of this backend, or has been freed: %w", x, ringo.ErrInvalid)
}

// device refuses numbers that no device has.
func (b *Backend) device(n backends.DeviceNum) error {
	if n < 0 || int(n) >= b.NumDevices() {
		return fmt.Errorf("gomlx: device %d of %d: %w", n, b.NumDevices(), ringo.ErrInvalid)
	}
	return nil
}

// BufferFinalize implements backends.DataInterface.
func (b *Backend) BufferFinalize(x backends.Buffer) error {
	own, err := below(x)
	if err != nil {
		return err
	}
	inner := own.inner
	own.inner = nil
	return b.inner.BufferFinalize(inner)
}

// BufferShape implements backends.DataInterface.
func (b *Backend) BufferShape(x backends.Buffer) (shapes.Shape, error) {
	own, err := below(x)
	if err != nil {
		return shapes.Invalid(), err
	}
	return b.inner.BufferShape(own.inner)
}

// BufferDeviceNum implements backends.DataInterface.
func (b *Backend) BufferDeviceNum(x backends.Buffer) (backends.DeviceNum, error) {
	own, err := below(x)
	if err != nil {
		return 0, err
	}
	return own.device, nil
}

// BufferToFlatData implements backends.DataInterface.
func (b *Backend) BufferToFlatData(x backends.Buffer, flat any) error {
	own, err := below(x)
	if err != nil {
		return err
	}
	return b.inner.BufferToFlatData(own.inner, flat)
}

// BufferFromFlatData implements backends.DataInterface.
func (b *Backend) BufferFromFlatData(device backends.DeviceNum, flat any, shape shapes.Shape) (backends.Buffer, error) {
	if err := b.device(device); err != nil {
		return nil, err
	}
	inner, err := b.inner.BufferFromFlatData(0, flat, shape)
	if err != nil {
		return nil, err
	}
	return &buffer{inner: inner, device: device}, nil
}

// HasSharedBuffers implements backends.DataInterface.
func (b *Backend) HasSharedBuffers() bool { return true }

// NewSharedBuffer implements backends.DataInterface.
func (b *Backend) NewSharedBuffer(device backends.DeviceNum, shape shapes.Shape) (backends.Buffer, any, error) {
	if err := b.device(device); err != nil {
		return nil, nil, err
	}
	inner, flat, err := b.inner.NewSharedBuffer(0, shape)
	if err != nil {
		return nil, nil, err
	}
	return &buffer{inner: inner, device: device}, flat, nil
}

// BufferData implements backends.DataInterface.
func (b *Backend) BufferData(x backends.Buffer) (any, error) {
	own, err := below(x)
	if err != nil {
		return nil, err
	}
	return b.inner.BufferData(own.inner)
}

// BufferCopyToDevice implements backends.DataInterface.
func (b *Backend) BufferCopyToDevice(x backends.Buffer, device backends.DeviceNum) (backends.Buffer, error) {
	own, err := below(x)
	if err != nil {
		return nil, err
	}
	if own.device == device {
		return nil, fmt.Errorf("gomlx: the buffer is on device %d already: %w", device, ringo.ErrInvalid)
	}
	shape, err := b.inner.BufferShape(own.inner)
	if err != nil {
		return nil, err
	}
	flat, err := b.inner.BufferData(own.inner)
	if err != nil {
		return nil, err
	}
	return b.BufferFromFlatData(device, flat, shape)
}
