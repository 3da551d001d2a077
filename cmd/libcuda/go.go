//go:build cgo && linux && (amd64 || arm64)

// Command libcuda is libcuda.so.1, the CUDA driver's library, of emulated GPUs: programs that
// use the driver API run on a machine without a GPU, with libnccl.so.2 or without. RINGO_EMULATE is
// the number of GPUs, 1 if it is not set. scripts/libcuda builds it.
//
// The emulator is stricter than hardware. It writes what it finds, races, unwritten memory and bad
// addresses, to standard error. The trap: the CUDA runtime (cudart, and so PyTorch) needs more of a
// driver than there is here.
package main

// #include <stdint.h>
// static void call(uintptr_t f, uintptr_t p) { ((void (*)(void *))f)((void *)p); }
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/ringo-go/ringo/cmd/libcuda/cudac"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
)

func main() {} // a library has none, but c-shared wants one

// driver is this process's, made by its first call.
var driver = sync.OnceValues(func() (*cudac.Library, error) {
	// A kernel may wait for a rank of another process, which reads a file or is stopped. That is no deadlock for long.
	cfg := cudaemu.Config{Devices: 1, Stall: 5 * time.Minute, Report: func(f *weakmem.Fault) bool {
		fmt.Fprintln(os.Stderr, "emulated GPU:", f)
		return true
	}}
	if text := os.Getenv("RINGO_EMULATE"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("RINGO_EMULATE=%q: want a number of GPUs", text)
		}
		cfg.Devices = n
	}
	m, err := cudaemu.New(cfg)
	if err != nil {
		return nil, err
	}
	return cudac.New(m, func(f, p uintptr) { C.call(C.uintptr_t(f), C.uintptr_t(p)) }), nil
})

//export ringo_cuda
func ringo_cuda(name *C.char, args *C.uintptr_t) C.int {
	d, err := driver()
	if err != nil {
		fmt.Fprintln(os.Stderr, "emulated GPU:", err)
		return C.int(cuda.ErrNoDevice)
	}
	return C.int(d.Do(nameOf(name), (*cudac.Args)(unsafe.Pointer(args))))
}

// nameOf is a C string that stays.
func nameOf(name *C.char) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(name), n)) != 0 {
		n++
	}
	return unsafe.String((*byte)(unsafe.Pointer(name)), n)
}

//export ringo_cuda_error
func ringo_cuda_error(result C.int) *C.char {
	texts.Lock()
	defer texts.Unlock()
	if texts.m[result] == nil {
		texts.m[result] = C.CString(cuda.Result(result).Error())
	}
	return texts.m[result]
}

// texts are those of results, which stay.
var texts = struct {
	sync.Mutex
	m map[C.int]*C.char
}{m: map[C.int]*C.char{}}
