package nvml

import "fmt"

// A Result is an nvmlReturn_t. It is an error, so that errors.Is(err, ErrGPUIsLost) works.
type Result int32

// Results with a meaning for callers.
const (
	ErrNotSupported     Result = 3
	ErrNoPermission     Result = 4
	ErrNotFound         Result = 6
	errInsufficientSize Result = 7
	ErrDriverNotLoaded  Result = 9
	ErrFunctionNotFound Result = 13
	ErrGPUIsLost        Result = 15
	ErrResetRequired    Result = 16
	ErrVersionMismatch  Result = 18
	ErrUnknown          Result = 999
)

var results = map[Result]string{
	1: "the library is not started", 2: "invalid argument", ErrNotSupported: "the GPU does not say",
	ErrNoPermission: "no permission",
	ErrNotFound:     "not found", errInsufficientSize: "too little room", 8: "the power cables are not all attached",
	ErrDriverNotLoaded: "the driver's kernel module is not loaded",
	10:                 "timeout", 11: "the kernel has an interrupt problem with the GPU", 12: "library not found",
	ErrFunctionNotFound: "this library is too old for it",
	14:                  "the GPU's infoROM is corrupted", ErrGPUIsLost: "the GPU has fallen off the bus",
	ErrResetRequired: "the GPU needs a reset", 17: "the operating system has blocked the GPU",
	ErrVersionMismatch: "library and kernel module are of different drivers", 21: "no data", ErrUnknown: "unknown error",
}

func (r Result) Error() string {
	if s, ok := results[r]; ok {
		return s
	}
	return fmt.Sprintf("result %d", int32(r))
}

// An Error is a failed call. It unwraps to its Result.
type Error struct {
	Call   string // "nvmlDeviceGetEccMode"
	Result Result
}

func (e *Error) Error() string { return e.Call + ": " + e.Result.Error() }
func (e *Error) Unwrap() error { return e.Result }
