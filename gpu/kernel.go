package gpu

import (
	"fmt"
	"math"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/ptx"
)

// A Kernel can be launched by any number of goroutines at once.
type Kernel struct {
	device    *Device
	module    *Module
	name      string
	f         cuda.Function
	signature *ptx.Func // nil if it is not known

	asking sync.Mutex   // held while shared grows
	shared atomic.Int64 // bytes of dynamic shared memory that the driver has allowed
}

// Launch is the size of a kernel's launch. Extents that are zero are 1.
type Launch struct {
	Grid, Block [3]int // blocks, and threads of a block
	Shared      int    // bytes of dynamic shared memory of a block
	Cooperative bool   // all blocks are resident at once, or the launch fails
}

// An ArgumentError says which argument of a launch does not suit the kernel.
type ArgumentError struct {
	Kernel string
	Index  int    // of the argument, from 0; -1: their number is wrong
	Name   string // of the parameter
	Reason string
}

func (e *ArgumentError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("gpu: kernel %s: %s", e.Kernel, e.Reason)
	}
	return fmt.Sprintf("gpu: kernel %s: argument %d (%s): %s", e.Kernel, e.Index, e.Name, e.Reason)
}

// A LaunchError is a launch that the driver refuses, or whose sizes are out of range.
type LaunchError struct {
	Kernel string
	Launch Launch
	Err    error // the driver's
}

func (e *LaunchError) Unwrap() error { return e.Err }

func (e *LaunchError) Error() string {
	return fmt.Sprintf("gpu: kernel %s, grid %v, block %v, %d bytes of shared memory: %v", e.Kernel, e.Launch.Grid,
		e.Launch.Block, e.Launch.Shared, e.Err)
}

// Name is the kernel's name.
func (k *Kernel) Name() string { return k.name }

// Blocks is how many blocks with so many threads and bytes of dynamic shared memory run at once on a
// multiprocessor.
func (k *Kernel) Blocks(threads, shared int) (n int, err error) {
	err = k.device.With(func() error {
		if err := k.allow(shared); err != nil {
			return fmt.Errorf("gpu: kernel %s: %w", k.name, err)
		}
		n, err = k.device.driver.OccupancyMaxActiveBlocksPerMultiprocessor(k.f, threads, shared)
		return err
	})
	return n, err
}

// freely is how much dynamic shared memory a block may have without asking for it.
const freely = 48 << 10

// allow asks for dynamic shared memory, once for each larger size.
func (k *Kernel) allow(shared int) error {
	switch {
	case k.module.closed.Load():
		return ErrClosed
	case shared < 0 || shared > math.MaxInt32:
		return fmt.Errorf("shared memory is 0 to 2,147,483,647 bytes")
	case shared <= freely || int64(shared) <= k.shared.Load():
		return nil
	}
	k.asking.Lock()
	defer k.asking.Unlock()
	if int64(shared) <= k.shared.Load() {
		return nil
	}
	if err := k.device.driver.FuncSetAttribute(k.f, cuda.FuncMaxDynamicShared, shared); err != nil {
		return err
	}
	k.shared.Store(int64(shared))
	return nil
}

// frames hold what a launch passes on.
var frames = sync.Pool{New: func() any { return new(frame) }}

type frame struct {
	args   []byte
	launch cuda.Launch
}

// Launch queues the kernel on a stream of its device. args are, in the kernel's order:
//
//   - a mem.Region or a *Buffer: its address, for a pointer; nil is the null pointer
//   - numbers of the parameter's size: a float32 for .f32, an int64 or uint64 for .u64, a uintptr
//     for an address; an int for any whole number that it fits
//   - a struct or an array of such, as the kernel's in C, for one passed by value
//
// If the module is PTX, Launch checks the arguments' sizes, and that no float stands for a whole number or the other
// way round; nothing else is checked. Memory of another device needs Device.Reach first. The error is an
// *ArgumentError or a *LaunchError. A fault while the kernel runs is an error of a later call, such as
// Synchronize; the emulator reports there also faults that a GPU would not notice.
//
// The bytes of the arguments are copied before Launch returns.
func (k *Kernel) Launch(s Stream, l Launch, args ...any) error {
	fr := frames.Get().(*frame)
	defer frames.Put(fr)
	var err error
	if fr.args, err = k.pack(fr.args[:0], args); err != nil {
		return err
	}
	refuse := func(err error) error { return &LaunchError{k.name, l, err} }
	var dims [6]uint32
	for i, n := range [...]int{l.Grid[0], l.Grid[1], l.Grid[2], l.Block[0], l.Block[1], l.Block[2]} {
		if n < 0 || n > 1<<31-1 {
			return refuse(fmt.Errorf("extents are 1 to 2,147,483,647"))
		}
		dims[i] = uint32(max(1, n))
	}
	fr.launch = cuda.Launch{
		Grid: cuda.Dim3{X: dims[0], Y: dims[1], Z: dims[2]}, Block: cuda.Dim3{X: dims[3], Y: dims[4], Z: dims[5]},
		Shared: l.Shared, Stream: s, Cooperative: l.Cooperative,
	}
	err = k.device.With(func() error {
		if err := k.allow(l.Shared); err != nil {
			return err
		}
		return k.device.driver.LaunchKernel(k.f, &fr.launch, fr.args)
	})
	if err != nil {
		return refuse(err)
	}
	return nil
}

// pack appends the arguments to b, laid out as the kernel's parameters.
func (k *Kernel) pack(b []byte, args []any) ([]byte, error) {
	if k.signature == nil {
		return k.packByType(b, args)
	}
	params := k.signature.Params
	if len(args) != len(params) {
		return nil, &ArgumentError{k.name, -1, "",
			fmt.Sprintf("%d arguments, and it has %d parameters: %s", len(args), len(params), k.signature.Signature())}
	}
	for len(b) < k.signature.ParamBytes {
		b = append(b, 0)
	}
	for i := range params {
		v := &params[i]
		if reason := encode(b[v.Offset:v.Offset+v.Size()], v.Type, v.Count == 1, args[i]); reason != "" {
			return nil, &ArgumentError{k.name, i, "." + v.Type.String() + " " + v.Name, reason}
		}
	}
	return b, nil
}

// packByType is pack for a kernel whose parameters are not known.
func (k *Kernel) packByType(b []byte, args []any) ([]byte, error) {
	for i, a := range args {
		size, align := 8, 8
		if t := reflect.TypeOf(a); t != nil && !isPointer(a) {
			if size, align = int(t.Size()), t.Align(); t.Kind() == reflect.Int || t.Kind() == reflect.Uint {
				return nil, &ArgumentError{k.name, i, "?",
					"the kernel's parameters are not known: give an int32, int64, uint32 or uint64"}
			}
		}
		for len(b)%align != 0 {
			b = append(b, 0)
		}
		at := len(b)
		b = append(b, make([]byte, size)...)
		if reason := encode(b[at:], ptx.NoType, false, a); reason != "" {
			return nil, &ArgumentError{k.name, i, "?", reason}
		}
	}
	return b, nil
}
