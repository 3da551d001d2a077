package bootstrap

import (
	"errors"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// ErrClosed is the error of a call on a closed Group.
var ErrClosed = errors.New("group closed")

// What ranks and the hub tell each other of a group. Fields and methods: go doc ringo/bootstrap/rendezvous.
type (
	// A Failure is the end of a group. A rank died; or it gave up and said why; or the hub has found that the ranks cannot
	// go on.
	Failure = rendezvous.Failure
	// A Position is a rank's progress in its sequence of collectives.
	Position = rendezvous.Position
	// A Need is the ranks without whose part a rank cannot end a collective.
	Need = rendezvous.Need
	// Messages count the Sends to a peer, or the Recvs from a peer, that a rank has begun.
	Messages = rendezvous.Messages
	// Called is a collective that a rank has begun.
	Called = rendezvous.Called
	// A Disagreement says that two ranks have begun different calls under one Number.
	Disagreement = rendezvous.Disagreement
	// A Differ is the first entry in which the Counts of two ranks differ.
	Differ = rendezvous.Differ
	// A Stopped is where a rank's operation was stopped.
	Stopped = rendezvous.Stopped
	// A Lateness is why an operation ran out of time.
	Lateness = rendezvous.Lateness
)

// The Needs beside those of NeedOf.
const (
	Nobody   = rendezvous.Nobody
	Everyone = rendezvous.Everyone
)

// NeedOf is the Need of one rank's part.
func NeedOf(rank int) Need { return rendezvous.NeedOf(rank) }

// TrialTime is how long the ranks have to tell where they were stopped, after one of them has run out of time.
// InquestTime bounds the time from a complaint to the hub's word.
const (
	TrialTime   = rendezvous.TrialTime
	InquestTime = rendezvous.InquestTime
)

// A JoinError says why Join failed.
type JoinError struct {
	Missing []int  // the ranks that did not come, if that was the reason
	Reason  string // what happened and what to do
	Err     error  // context.DeadlineExceeded, context.Canceled, a *Failure, ErrExcluded, a network error, or nil
	Nobody  error  // the error of the last attempt, if nothing answered at the ID's address
}

func (e *JoinError) Error() string { return "join: " + e.Reason }
func (e *JoinError) Unwrap() error { return e.Err }

// A Roster lists the ranks that have come to a group of Meet, and the others.
type Roster = rendezvous.Roster
