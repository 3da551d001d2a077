// Package gpu opens GPUs for Go programs: devices, their memory and streams,
// without cgo and without the CUDA toolkit. A program that has its memory and
// streams from elsewhere passes their addresses and handles as they are.
//
// With Options.Emulate there need be no GPU: an emulated driver executes the
// same kernels, slowly and strictly.
package gpu

import (
	"github.com/ringo-go/ringo/internal/cuda"
)

// A Stream is a queue of work on a device: a CUstream. The zero Stream is the
// legacy default stream.
type Stream = cuda.Stream

// Streams that every device has.
const (
	Legacy    Stream = cuda.StreamLegacy
	PerThread Stream = cuda.StreamPerThread
)

// Options say which driver.
type Options struct {
	// Library is the file of the CUDA driver, "libcuda.so.1" if empty.
	Library string
	// Emulate, if positive, is a number of emulated devices instead.
	Emulate int
	Seed    uint64 // of the emulator
}
