package capi

import (
	"fmt"

	"github.com/ringo-go/ringo"
)

// Why a communicator takes no calls.
var (
	errFinalized = fmt.Errorf("%w: the communicator was finalized: ncclCommDestroy is all that is left", errUsage)
	errSuspended = fmt.Errorf("%w: the communicator is suspended: call ncclCommResume", errUsage)
	errNotReady  = fmt.Errorf("%w: the communicator is not ready: call ncclGroupEnd, or poll ncclCommGetAsyncError "+
		"until it is not ncclInProgress", ringo.ErrInvalid)
	errEnding = fmt.Errorf("%w: the communicator is being destroyed or aborted", errUsage)
)

// A state is how far a communicator is in its life: being opened, open, busy with jobs in the background, closing,
// and gone when it is closing and no job is left. It is a pure machine: comm holds its lock.
type state struct {
	open    bool
	jobs    int
	barred  error // errFinalized or errSuspended
	failed  error // the first failure of a job
	closing bool
}

// begin is that a job in the background begins. A communicator that is closing takes none.
func (s *state) begin() error {
	if s.closing {
		return errEnding
	}
	s.jobs++
	return nil
}

// finish is the end of what begin has begun.
func (s *state) finish(err error) {
	s.jobs--
	s.fail(err)
}

// fail notes a failure, if it is the first.
func (s *state) fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// close is that the communicator is to end: it takes nothing any more. The error is that it was said before.
func (s *state) close() error {
	if s.closing {
		return errEnding
	}
	s.closing = true
	return nil
}

// quiet reports whether a communicator that is closing may be given back.
func (s *state) quiet() bool { return s.closing && s.jobs == 0 }

// takes is nil where calls may come in, else why not.
func (s *state) takes() error {
	switch {
	case s.failed != nil:
		return s.failed
	case s.closing:
		return errEnding
	case s.barred != nil:
		return s.barred
	case !s.open || s.jobs > 0:
		return errNotReady
	}
	return nil
}
