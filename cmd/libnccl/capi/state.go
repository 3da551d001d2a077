package capi

import (
	"fmt"

	"github.com/ringo-go/ringo"
)

// Why a communicator takes no calls.
var (
	errFinalized = fmt.Errorf("%w: the communicator was finalized: ncclCommDestroy is all that is left",
		ringo.ErrInvalid)
	errSuspended = fmt.Errorf("%w: the communicator is suspended: call ncclCommResume", errUsage)
	errNotReady  = fmt.Errorf("%w: the communicator is not ready: call ncclGroupEnd, or poll ncclCommGetAsyncError "+
		"until it is not ncclInProgress", ringo.ErrInvalid)
	errRevoked = fmt.Errorf("%w: the communicator was revoked: ncclCommShrink, ncclCommSplit, ncclCommGrow and "+
		"ncclCommDestroy are left", errUsage)
	errEnding = fmt.Errorf("%w: the communicator is being destroyed or aborted", errUsage)
)

// A state is a communicator's stage of life: being opened, open, busy with jobs in the background, closing, and gone
// when it is closing and no job is left. The methods are pure transitions; comm holds the lock.
type state struct {
	open    bool
	jobs    int
	barred  error // errFinalized or errSuspended
	revoked bool  // operations were ended by ncclCommRevoke, which is no failure
	failed  error // the first failure of a job
	closing bool
}

// begin is the event that a job in the background begins. A closing communicator refuses it.
func (s *state) begin() error {
	if s.closing {
		return errEnding
	}
	s.jobs++
	return nil
}

// finish is the event that such a job ends.
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

// revoke is the event of ncclCommRevoke, for a communicator that neither was revoked nor ends.
func (s *state) revoke() error {
	switch {
	case s.revoked:
		return fmt.Errorf("%w: ncclCommRevoke: the communicator was revoked before", ringo.ErrInvalid)
	case s.closing, s.barred == errFinalized:
		return fmt.Errorf("%w: ncclCommRevoke: the communicator was finalized or is being destroyed", ringo.ErrInvalid)
	}
	s.revoked = true
	return nil
}

// close is the event that the communicator is to end: it refuses all calls from now on. A second close is an error.
func (s *state) close() error {
	if s.closing {
		return errEnding
	}
	s.closing = true
	return nil
}

// quiet reports whether a communicator that is closing may be given back.
func (s *state) quiet() bool { return s.closing && s.jobs == 0 }

// takes is nil where the communicator takes calls, else the reason why not.
func (s *state) takes() error {
	switch {
	case s.revoked && !s.closing:
		return errRevoked
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
