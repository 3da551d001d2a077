// Package nvml is NVIDIA's management library without cgo: it asks a driver about the
// health of its GPUs, for package check. Open opens the library. The package is
// part of the command ringo; nothing here is promised to other modules.
//
// The trap: hardly any GPU answers everything, and old libraries lack functions. A field without an answer is Unknown,
// or -1.
package nvml

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/ringo-go/ringo/internal/dl"
)

// File is what Open opens where no other is named.
const File = "libnvidia-ml.so.1"

// A Library is NVML, opened and initialised until the process ends. Its methods may be
// called by any goroutine.
type Library struct {
	lib dl.Library
	mu  sync.Mutex
	fns map[string]uintptr // guarded by mu; 0 for a function that is not there
}

// Open opens the library in file, or the usual one, and starts it. The error says what is
// missing: most often there is no NVIDIA driver.
func Open(file string) (*Library, error) {
	if file == "" {
		file = File
	}
	lib, err := dl.Open(file)
	if err != nil {
		return nil, fmt.Errorf("nvml: %w; it comes with the NVIDIA driver", err)
	}
	l := &Library{lib: lib, fns: map[string]uintptr{}}
	if err := l.call("nvmlInit_v2"); err != nil {
		return nil, fmt.Errorf("nvml: %s: %w", file, err)
	}
	return l, nil
}

// A Device is a handle of a GPU.
type Device uintptr

// Driver is the version of the driver as people know it: "570.124.06".
func (l *Library) Driver() (string, error) {
	b := new([80]byte) // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
	err := l.call("nvmlSystemGetDriverVersion", addressOf(&b[0]), uintptr(len(b)))
	text, _, _ := strings.Cut(string(b[:]), "\x00")
	return text, err
}

// Count is how many GPUs the driver knows, whatever CUDA_VISIBLE_DEVICES says.
func (l *Library) Count() (int, error) {
	n := new(uint32)
	err := l.call("nvmlDeviceGetCount_v2", addressOf(n))
	return int(*n), err
}

// At is the GPU at a PCI address such as "0000:1b:00.0".
func (l *Library) At(pci string) (Device, error) {
	d, name := new(Device), append([]byte(pci), 0)
	err := l.call("nvmlDeviceGetHandleByPciBusId_v2", addressOf(&name[0]), addressOf(d))
	runtime.KeepAlive(name)
	return *d, err
}

// function is the address of one of the library's functions.
func (l *Library) function(name string) (uintptr, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn, asked := l.fns[name]
	if !asked {
		fn, _ = l.lib.Sym(name) // an error is a function that is not there
		l.fns[name] = fn
	}
	return fn, fn != 0
}

// call calls a function by its name. The error is an *Error.
func (l *Library) call(name string, args ...uintptr) error {
	fn, ok := l.function(name)
	if !ok {
		return &Error{name, ErrFunctionNotFound}
	}
	if r := Result(int32(dl.Call(fn, args...))); r != 0 {
		return &Error{name, r}
	}
	return nil
}
