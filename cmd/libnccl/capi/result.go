package capi

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

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
	l.logger().Warn(text)
}

// logger is the log of the communicator that was made last.
func (l *Library) logger() *slog.Logger {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.base == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l.base.Log
}

// failed logs why a communicator has failed, also where the environment asks for no log: many a program looks at no
// result. Of all ranks of the process one says so. What the program ended itself is no failure.
func (l *Library) failed(c *comm, err error) {
	r := c.opened()
	if err == nil || err == errInProgress || r == nil || r.Failure() == nil || errors.Is(err, ringo.ErrClosed) ||
		c.quits.Load() || c.said.Swap(true) {
		return
	}
	l.last.Store(&complaint{err.Error()})
	c.config.Log.Error(err.Error(), "subsys", "CALL", commKey, r.History().Comm)
}

// LastError is the sentence of a communicator's failure, or else of the library's most recent
// error; "" if there was none.
func (l *Library) LastError(handle uintptr) string {
	if c, err := l.comms.Get(handle); err == nil {
		if _, err := c.asyncError(); err != nil {
			return err.Error()
		}
	}
	if last := l.last.Load(); last != nil {
		return last.text
	}
	return ""
}
