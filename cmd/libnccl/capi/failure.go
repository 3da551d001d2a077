package capi

import (
	"errors"
	"strings"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/life"
)

// Failed, if set, is called once for each communicator that fails, by any call or by what the GPU does: for the report
// of ringo emulate. It is set before the first communicator is made.
var Failed func(e *ringo.Error, device int)

// Spoils reports whether an error is that of a communicator, which no later call can use.
func Spoils(err error) bool {
	if Asked(err) {
		return false
	}
	for _, of := range []error{ringo.ErrMismatch, ringo.ErrPeer, ringo.ErrLeft, ringo.ErrTimeout, ringo.ErrAborted} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// Asked reports whether an error is what a program has asked for: by ncclCommAbort on this rank, or by a call on any
// rank after which all go on.
func Asked(err error) bool {
	says := func(reason error) bool { return strings.Contains(err.Error(), "aborted: "+reason.Error()) }
	return errors.Is(err, ringo.ErrAborted) && says(errAbort) || err != nil && (says(errRevoke) || says(errShrink))
}

// The reasons of ends that programs ask for.
var (
	errAbort  = errors.New("ncclCommAbort")
	errRevoke = errors.New("ncclCommRevoke")
	errShrink = errors.New("ncclCommShrink")
)

// tellsFailure has Failed called when an open communicator fails.
func (c *comm) tellsFailure(r *ringo.Comm) {
	if Failed == nil {
		return
	}
	tell := sync.OnceFunc(func() {
		device := -1
		if c.device != nil {
			device = c.device.Number()
		}
		if e, ok := errors.AsType[*ringo.Error](life.Of(r).Met()); ok && Spoils(e) {
			Failed(e, device)
		}
	})
	life.Of(r).OnEnd(tell)
	if r.Failure() != nil { // before OnEnd
		tell()
	}
}
