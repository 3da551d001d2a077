package engine

import (
	"fmt"

	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// A StepError is the error of a step, with the peer and the phase.
type StepError struct {
	Peer  sched.Rank
	Phase string // "send", "recv", "connect", "accept"
	Err   error

	Round, Step int // where in the schedule
}

// at notes where in the schedule a step has failed.
func at(err error, round, step int) error {
	if e, ok := err.(*StepError); ok {
		e.Round, e.Step = round, step
	}
	return err
}

func (e *StepError) Error() string {
	word := "to"
	if e.Phase == "recv" || e.Phase == "accept" {
		word = "from"
	}
	return fmt.Sprintf("%s %s rank %d: %v", e.Phase, word, e.Peer, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

// A MismatchError says that the peer's slot belongs to another call than ours,
// or has another length: the ranks are at different calls.
type MismatchError struct {
	Want, Got           transport.Stamp
	WantBytes, GotBytes int
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("ranks disagree: expected %d bytes of call %x, got %d bytes of call %x",
		e.WantBytes, e.Want, e.GotBytes, e.Got)
}
