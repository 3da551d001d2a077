package capi

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
)

// A Result is an ncclResult_t.
type Result int32

// The results. ncclTimeout (8) is newer than the version that the library answers as, and
// clients with a closed table of results break on it, so a timeout is RemoteError.
const (
	Success Result = iota
	UnhandledCudaError
	SystemError
	InternalError
	InvalidArgument
	InvalidUsage
	RemoteError
	InProgress
)

var resultTexts = [...]string{
	Success:            "no error",
	UnhandledCudaError: "unhandled cuda error (ncclGetLastError says which)",
	SystemError:        "unhandled system error (ncclGetLastError says which)",
	InternalError:      "internal error (ncclGetLastError says which)",
	InvalidArgument:    "invalid argument (ncclGetLastError says which)",
	InvalidUsage:       "invalid usage (ncclGetLastError says what is wrong)",
	RemoteError:        "remote process exited or there was a network error (ncclGetLastError says which)",
	InProgress:         "NCCL operation in progress",
}

func (r Result) String() string {
	if r < 0 || int(r) >= len(resultTexts) {
		return "unknown result code"
	}
	return resultTexts[r]
}

// Because is the result's name, followed by an error's sentence.
func (r Result) Because(err error) string {
	what, _, _ := strings.Cut(r.String(), " (")
	return what + ": " + err.Error()
}

// errInProgress is the answer of a communicator that does not block.
var errInProgress = errors.New("in progress")

// errUsage marks what is wrong with the order of calls rather than with an argument.
var errUsage = errors.New("invalid usage")

// errFault marks a panic.
var errFault = errors.New("libnccl: a fault of the library's own")

// caught makes an error of a panic. It is deferred in every goroutine of the library.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v\n%s", errFault, p, debug.Stack())
	}
}

// ResultOf is the number of an error.
func ResultOf(err error) Result {
	var driver *cuda.Error
	var none *cuda.Unavailable
	var marked *cudaError
	var memory *gpu.MemoryError
	switch {
	case err == nil:
		return Success
	case err == errInProgress:
		return InProgress
	case errors.Is(err, errUsage), errors.Is(err, call.ErrUnmatched), errors.Is(err, ringo.ErrUnsupported),
		errors.Is(err, ringo.ErrClosed), errors.Is(err, ringo.ErrMismatch):
		return InvalidUsage
	case errors.Is(err, ringo.ErrInvalid), errors.As(err, &memory):
		return InvalidArgument
	case errors.Is(err, ringo.ErrPeer), errors.Is(err, ringo.ErrLeft), errors.Is(err, ringo.ErrTimeout):
		return RemoteError
	case errors.Is(err, ringo.ErrAborted), errors.Is(err, errFault):
		return InternalError
	case errors.As(err, &marked), errors.As(err, &driver), errors.As(err, &none):
		return UnhandledCudaError
	}
	return SystemError
}

// errorOf renames an error to the program's call: calls such as Split consist of others, which the program never made.
func errorOf(name string, err error) error {
	e, ok := errors.AsType[*ringo.Error](err)
	if !ok {
		return err
	}
	named := *e
	named.Op, named.Seq = name, 0
	return &named
}

// A complaint is the sentence of an error.
type complaint struct{ text string }

// Note keeps the sentence of an error for LastError, and logs it.
func (l *Library) Note(err error) {
	if err == nil || err == errInProgress {
		return
	}
	text := err.Error()
	if before := l.last.Swap(&complaint{text}); before != nil && before.text == text { // a watchdog repeats its question
		return
	}
	l.mu.Lock()
	base := l.base
	l.mu.Unlock()
	if base != nil {
		base.Log.Warn(text)
	}
}

// LastError is the sentence of a communicator's failure, or else of the library's most recent
// error; "" if there was none.
func (l *Library) LastError(handle uintptr) string {
	if c, err := l.comms.get(handle); err == nil {
		if _, err := c.asyncError(); err != nil {
			return err.Error()
		}
	}
	if last := l.last.Load(); last != nil {
		return last.text
	}
	return ""
}
