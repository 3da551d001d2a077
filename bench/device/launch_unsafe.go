package device

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/dl"
)

// callLoop calls launch_loop of testdata/launch.c. dl.Call keeps params where they are during the call.
func callLoop(loop uintptr, f cuda.Function, s cuda.Stream, params []byte, n int) (ns float64, err error) {
	took := int(dl.Call(loop, uintptr(f), uintptr(s), uintptr(unsafe.Pointer(unsafe.SliceData(params))),
		uintptr(len(params)), uintptr(n)))
	switch {
	case took == -1000:
		return 0, errors.New("launch from C: libcuda.so.1 or its cuLaunchKernel cannot be found")
	case took < 0:
		return 0, fmt.Errorf("launch from C: %w", cuda.Result(-took))
	}
	return float64(took), nil
}
