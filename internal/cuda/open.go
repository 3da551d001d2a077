package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/internal/dl"
)

// MinVersion is the oldest driver that Open takes, that of CUDA 11.4 (R470):
// the first with all of the graph functions that are called here.
const MinVersion = 11040

// defaultPath is the driver's file name wherever it is installed.
const defaultPath = "libcuda.so.1"

// A Reason says why there is no driver.
type Reason string

const (
	LeftOut   Reason = "this program has no CUDA in it"
	NoLibrary Reason = "the driver cannot be opened"
	NotDriver Reason = "the library is not the CUDA driver"
	Stub      Reason = "the library is the stub that programs are linked with, not the driver"
	NoDevice  Reason = "the driver sees no GPU"
	TooOld    Reason = "the driver is too old"
	Mismatch  Reason = "the library and the kernel module are of different drivers"
	InitFails Reason = "the driver does not start"
)

// remedyFor says what to do about each reason.
var remedyFor = map[Reason]string{
	LeftOut:   "build on Linux on amd64 or arm64 without the tag ringo_nogpu",
	NoLibrary: "install the NVIDIA driver, or in a container start it with the GPUs (--gpus all)",
	NotDriver: "name the libcuda.so.1 of the NVIDIA driver, or name none",
	Stub: "take the folder with stubs out of the library path, so that the libcuda.so.1 of the NVIDIA driver is " +
		"found",
	NoDevice: "look at nvidia-smi, CUDA_VISIBLE_DEVICES and the permissions of /dev/nvidia*",
	TooOld:   "install a driver of CUDA " + versionString(MinVersion) + " (470) or newer",
	Mismatch: "reboot, or reload the kernel module, after an update of the driver; in a container use the host's " +
		"libcuda.so.1",
	InitFails: "look at nvidia-smi and dmesg",
}

// Unavailable is the error of Open: no driver can be used.
type Unavailable struct {
	Path   string // of the library
	Reason Reason
	Remedy string
	Err    error // what the linker or the driver said; may be nil
}

func (e *Unavailable) Unwrap() error { return e.Err }

func (e *Unavailable) Error() string {
	s := fmt.Sprintf("no CUDA: %s: %s", e.Path, e.Reason)
	var failed *Error
	if errors.As(e.Err, &failed) {
		s += fmt.Sprintf(" (%s: %s)", failed.Call, failed.Result)
	} else if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	return s + ": " + e.Remedy
}

var opened struct {
	sync.Mutex
	drivers map[string]*libcuda
}

// Open loads the NVIDIA driver and starts it: path is its library, "" the usual
// libcuda.so.1. Nothing of it is in the process before. A driver is opened once
// for each path and stays; after a failure Open may be called again. The error is
// an *Unavailable. The first call takes up to seconds, as the driver wakes GPUs.
func Open(path string) (Driver, error) {
	if path == "" {
		path = defaultPath
	}
	opened.Lock()
	defer opened.Unlock()
	if d := opened.drivers[path]; d != nil {
		return d, nil
	}
	d, err := open(path)
	if err != nil {
		return nil, err
	}
	if opened.drivers == nil {
		opened.drivers = map[string]*libcuda{}
	}
	opened.drivers[path] = d
	return d, nil
}

func open(path string) (*libcuda, error) {
	unavailable := func(r Reason, err error) error {
		return &Unavailable{Path: path, Reason: r, Remedy: remedyFor[r], Err: err}
	}
	lib, err := dl.Open(path)
	if errors.Is(err, dl.ErrUnsupported) {
		return nil, unavailable(LeftOut, err)
	} else if err != nil {
		return nil, unavailable(NoLibrary, err)
	}
	d := &libcuda{lib: lib}
	if err := d.start(); err != nil {
		return nil, unavailable(reasonOf(err), err)
	}
	if d.version < MinVersion {
		return nil, unavailable(TooOld, fmt.Errorf("it is of CUDA %s", versionString(d.version)))
	}
	return d, nil
}

func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, ErrStubLibrary):
		return Stub
	case errors.Is(err, ErrNoDevice):
		return NoDevice
	case errors.Is(err, ErrSystemDriverMismatch):
		return Mismatch
	case errors.Is(err, ErrSharedObjectSymbolNotFound):
		return NotDriver
	}
	return InitFails
}

// versionString is the usual form of a version: 13.0 for 13000.
func versionString(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
