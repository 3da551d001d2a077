package bootstrap

import (
	"errors"
	"fmt"
)

// ErrClosed is what a call on a closed Group returns.
var ErrClosed = errors.New("group closed")

// A Failure is the end of a group: a rank died, or gave up and said why.
type Failure struct {
	Rank   int    // who; -1 is a process that serves the hub and is no rank
	Died   bool   // it left without a word; otherwise it called Fail
	Reason string // its own words, or what was seen of its death
}

func (f *Failure) Error() string {
	who := fmt.Sprintf("rank %d", f.Rank)
	if f.Rank < 0 {
		who = "the process that serves the rendezvous"
	}
	if f.Died {
		return fmt.Sprintf("%s died: %s", who, f.Reason)
	}
	return fmt.Sprintf("%s failed: %s", who, f.Reason)
}

// A JoinError is why a group did not come together.
type JoinError struct {
	Missing []int  // the ranks that did not come, if that was the reason
	Reason  string // what happened and what to do
	Err     error  // context.DeadlineExceeded, context.Canceled, a *Failure, a network error, or nil
}

func (e *JoinError) Error() string { return "join: " + e.Reason }
func (e *JoinError) Unwrap() error { return e.Err }
