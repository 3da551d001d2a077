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
	pad   uint32
	value [16]uint32
}

const launchAttributeCooperative = 2

// A launchFrame is what a launch hands to C; see frame.
type launchFrame struct {
	dl.Frame
	size   uintptr
	extra  [5]uintptr
	params [maxArgs]byte
	config launchConfig
	attr   launchAttribute
}

var launchFrames = sync.Pool{New: func() any {
	f := new(launchFrame)
	f.extra = [5]uintptr{
		launchParamBufferPointer, uintptr(unsafe.Pointer(&f.params)),
		launchParamBufferSize, uintptr(unsafe.Pointer(&f.size)),
		launchParamEnd,
	}
	f.attr = launchAttribute{id: launchAttributeCooperative, value: [16]uint32{1}}
	return f
}}

func (d *libcuda) LaunchKernel(f Function, l *Launch, params []byte) error {
	if len(params) > maxArgs {
		return launched(l, params, d.failed(cuLaunchKernel, ErrInvalidValue))
	}
	if takes, known := d.params.of(f); known && takes != len(params) {
		err := d.failed(cuLaunchKernel, ErrLaunchOutOfResources) // as the driver says when there are more
		err.Remedy = fmt.Sprintf("pass exactly the %d bytes of parameters that the kernel takes", takes)
		return launched(l, params, err)
	}
	s := cuLaunchKernel
	if l.Cooperative {
		s = cuLaunchKernelEx
	}
	fn, err := d.addr(s)
	if err != nil {
		return err
	}
	frame := launchFrames.Get().(*launchFrame)
	frame.size = uintptr(copy(frame.params[:], params))
	frame.Fn = fn
	frame.setArgs(f, l)
	frame.Call()
	r := result(frame.Result)
	launchFrames.Put(frame)
	if r != 0 {
		return launched(l, params, d.failed(s, r))
	}
	return nil
}

// setArgs sets the arguments of cuLaunchKernel, or of cuLaunchKernelEx for a
// cooperative launch: unlike cuLaunchCooperativeKernel it takes the parameters as
// one block.
func (frame *launchFrame) setArgs(f Function, l *Launch) {
	grid, block := l.Grid.orOne(), l.Block.orOne()
	extra := uintptr(unsafe.Pointer(&frame.extra))
	if l.Cooperative {
		frame.config = launchConfig{grid, block, uint32(l.Shared), l.Stream, uintptr(unsafe.Pointer(&frame.attr)), 1}
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
		e.Remedy = fmt.Sprintf("the limits are 1024 threads a block, 65535 blocks in y and z, %d bytes of parameters, and 48 KiB of shared memory unless FuncMaxDynamicShared is set", maxArgs)
	}
	g, b := l.Grid.orOne(), l.Block.orOne()
	return detail(err, "grid %d×%d×%d, block %d×%d×%d, %d bytes of shared memory, %d bytes of parameters",
		g.X, g.Y, g.Z, b.X, b.Y, b.Z, l.Shared, len(params))
}

// orOne has ones for zeros.
func (d Dim3) orOne() Dim3 { return Dim3{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }
