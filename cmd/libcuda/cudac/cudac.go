// Package cudac is the C interface of the CUDA driver in front of a cuda.Driver: cmd/libcuda makes
// libcuda.so.1 of it and the emulator. A function is called by its exported name, with its arguments
// as words, and answers a CUresult. It is part of that library, and nothing here is promised to
// other modules.
//
// It has the functions that package cuda calls, in the same versions, and a few that every program
// needs. The trap: arguments are addresses that nobody checks, as in the real driver.
package cudac

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/internal/cuda"
)

// Args are the arguments of a call. Where C has an int, only the lower half of the word counts.
type Args [12]uintptr

// Callback calls a C function, void f(void *p).
type Callback func(f, p uintptr)

// A Library answers calls.
type Library struct {
	d    cuda.Driver
	call Callback
	say  func(string)
	kept memory

	libraries libraries
}

// New is a library in front of a driver. call calls functions of the program; say prints messages for its user.
func New(d cuda.Driver, call Callback, say func(string)) *Library {
	return &Library{d: d, call: call, say: say}
}

// unknown is CUDA_ERROR_UNKNOWN.
const unknown = 999

// resultAt is the argument of a function that points to its result, which it has to have.
var resultAt = func() map[string]int {
	at := map[string]int{}
	for i, names := range []string{
		`cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetUuid_v2 cuDeviceTotalMem_v2 cuDeviceGetAttribute
		cuDeviceCanAccessPeer cuDeviceGetP2PAttribute cuDevicePrimaryCtxRetain cuCtxCreate_v2 cuCtxGetCurrent
		cuCtxGetDevice cuCtxGetLimit cuMemAlloc_v2 cuMemAllocAsync cuMemHostAlloc cuMemAllocHost_v2 cuMemHostGetDevicePointer_v2 cuPointerGetAttribute
		cuMemGetAllocationGranularity cuMemCreate cuMemAddressReserve cuMemExportToShareableHandle cuIpcGetMemHandle
		cuIpcOpenMemHandle_v2 cuIpcGetEventHandle cuIpcOpenEventHandle cuGraphCreate cuGraphClone
		cuGraphInstantiateWithFlags cuLibraryGetModule cuLibraryGetKernel cuKernelGetFunction cuStreamCreateWithPriority
		cuStreamCreate cuEventCreate cuEventElapsedTime cuModuleLoadData cuModuleLoadFatBinary cuModuleGetFunction
		cuFuncGetAttribute cuOccupancyMaxActiveBlocksPerMultiprocessor`,
		`cuCtxGetApiVersion cuStreamGetCtx cuStreamGetFlags cuStreamGetPriority cuStreamGetId cuStreamEndCapture
		cuStreamIsCapturing`,
	} {
		for _, name := range strings.Fields(names) {
			at[name] = i
		}
	}
	return at
}()

// Do carries out a call of the function with that exported name; cuda.ErrNotSupported if there is none. err says why
// the result is not 0.
func (l *Library) Do(name string, a *Args) (r cuda.Result, err error) {
	f := functions[name]
	if f == nil {
		return cuda.ErrNotSupported, errors.New(name + " is not carried out on emulated GPUs")
	}
	if i, ok := resultAt[name]; ok && a[i] == 0 {
		return cuda.ErrInvalidValue, fmt.Errorf("argument %d, which points to the result, is null", i+1)
	}
	err = f(l, a)
	var failed *cuda.Error
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &failed):
		return failed.Result, err
	case errors.As(err, &r):
		return r, err
	}
	return unknown, err
}

// Names are the exported names of all functions, in no order.
func Names() []string {
	names := make([]string, 0, len(functions))
	for n := range functions {
		names = append(names, n)
	}
	return names
}

// notReady turns a query that is not ready into its error.
func notReady(ready bool, err error) error {
	if err == nil && !ready {
		return cuda.ErrNotReady
	}
	return err
}
