package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/ringo-go/ringo/internal/dl"
)

// maxArgs is the most bytes of a kernel's parameters, in the PTX version of the kernels.
const maxArgs = 4096

// Marks of the array "extra" that says where the parameters are.
const (
	launchParamEnd           = 0
	launchParamBufferPointer = 1
	launchParamBufferSize    = 2
)

// CUlaunchConfig
type launchConfig struct {
	grid, block Dim3
	shared      uint32
	stream      Stream
	attrs       uintptr
	numAttrs    uint32
}

// CUlaunchAttribute; its value is a union of 64 bytes
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

const (
	launchAttributeCooperative = 2
	launchAttributePriority    = 8
)

// A launchFrame is what a launch hands to C; see frame.
type launchFrame struct {
	dl.Frame
	size   uintptr
	extra  [5]uintptr
	params []byte // so that they are on the heap, and stay until C has read them
	record dl.Frame
	config launchConfig
	attrs  [2]launchAttribute
}

var launchFrames = sync.Pool{New: func() any {
	f := new(launchFrame)
	f.extra = [5]uintptr{
		launchParamBufferPointer, 0,
		launchParamBufferSize, uintptr(unsafe.Pointer(&f.size)),
		launchParamEnd,
	}
	return f
}}

func (d *libcuda) LaunchKernel(f Function, l *Launch, params []byte) error {
	return d.launch(f, l, params, 0)
}

// LaunchAndRecord launches a kernel and records event e behind it on its stream, unless e is 0. The real
// driver is entered once for both.
func LaunchAndRecord(d Driver, f Function, l *Launch, params []byte, e Event) error {
	if d, ok := d.(*libcuda); ok {
		return d.launch(f, l, params, e)
	}
	err := d.LaunchKernel(f, l, params)
	if err == nil && e != 0 {
		err = d.EventRecord(e, l.Stream)
	}
	return err
}

// launch is LaunchAndRecord for the real driver.
func (d *libcuda) launch(f Function, l *Launch, params []byte, e Event) error {
	if len(params) > maxArgs {
		return launched(l, params, d.failed(cuLaunchKernel, ErrInvalidValue))
	}
	if takes, known := d.params.of(f); known && takes != len(params) {
		err := d.failed(cuLaunchKernel, ErrLaunchOutOfResources) // as the driver says when there are more
		err.Remedy = fmt.Sprintf("pass exactly the %d bytes of parameters that the kernel takes", takes)
		return launched(l, params, err)
	}
	frame := launchFrames.Get().(*launchFrame)
	s, attrs := cuLaunchKernel, frame.setAttrs(l)
	if attrs > 0 {
		s = cuLaunchKernelEx
	}
	fn, err := d.addr(s)
	if err != nil {
		launchFrames.Put(frame)
		return err
	}
	frame.Fn, frame.Next, frame.record.Result = fn, nil, 0
	if e != 0 {
		if frame.record.Fn, err = d.addr(cuEventRecord); err != nil {
			return err
		}
		frame.record.Args[0], frame.record.Args[1] = uintptr(e), uintptr(l.Stream)
		frame.Next = &frame.record
	}
	frame.params, frame.size = params, uintptr(len(params))
	frame.extra[1] = uintptr(unsafe.Pointer(unsafe.SliceData(params)))
	frame.setArgs(f, l, attrs)
	frame.Call()
	r, recorded := result(frame.Result), result(frame.record.Result)
	frame.params = nil
	launchFrames.Put(frame)
	if r != 0 {
		return launched(l, params, d.failed(s, r))
	}
	if recorded != 0 {
		return d.failed(cuEventRecord, recorded)
	}
	return nil
}

// setAttrs sets the attributes of a launch and says how many there are.
func (frame *launchFrame) setAttrs(l *Launch) (n uint32) {
	add := func(id, value uint32) {
		frame.attrs[n] = launchAttribute{id: id, value: [16]uint32{value}}
		n++
	}
	if l.Cooperative {
		add(launchAttributeCooperative, 1)
	}
	if l.Priority != 0 {
		add(launchAttributePriority, uint32(int32(l.Priority)))
	}
	return n
}

// setArgs sets the arguments of cuLaunchKernel, or of cuLaunchKernelEx for a launch with
// attributes.
func (frame *launchFrame) setArgs(f Function, l *Launch, attrs uint32) {
	grid, block := l.Grid.orOne(), l.Block.orOne()
	extra := uintptr(unsafe.Pointer(&frame.extra))
	if attrs > 0 {
		frame.config = launchConfig{grid, block, uint32(l.Shared), l.Stream, uintptr(unsafe.Pointer(&frame.attrs)), attrs}
		frame.Args = [12]uintptr{uintptr(unsafe.Pointer(&frame.config)), uintptr(f), 0, extra}
		return
	}
	frame.Args = [12]uintptr{
		uintptr(f), uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z), uintptr(block.X), uintptr(block.Y), uintptr(block.Z),
		uintptr(uint32(l.Shared)), uintptr(l.Stream), 0, extra,
	}
}

// launched adds a description of the launch to its error.
func launched(l *Launch, params []byte, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Result == ErrInvalidValue && e.Remedy == "" {
		e.Remedy = fmt.Sprintf("the limits are 1024 threads a block, 65535 blocks in y and z, %d bytes of parameters, and "+
			"48 KiB of shared memory unless FuncMaxDynamicShared is set", maxArgs)
	}
	g, b := l.Grid.orOne(), l.Block.orOne()
	return detail(err, "grid %d×%d×%d, block %d×%d×%d, %d bytes of shared memory, %d bytes of parameters",
		g.X, g.Y, g.Z, b.X, b.Y, b.Z, l.Shared, len(params))
}

// orOne has ones for zeros.
func (d Dim3) orOne() Dim3 { return Dim3{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }
