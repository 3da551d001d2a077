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
	for _, of := range []error{ringo.ErrMismatch, ringo.ErrPeer, ringo.ErrLeft, ringo.ErrTimeout} {
		if errors.Is(err, of) {
			return true
		}
	}
	return errors.Is(err, ringo.ErrAborted) && !Asked(err)
}

// Asked reports whether an error is what a program has asked for by ncclCommAbort or ncclCommRevoke, on any rank.
func Asked(err error) bool {
	if !errors.Is(err, ringo.ErrAborted) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, errCommAbort.Error()) || strings.Contains(text, errCommRevoke.Error())
}

// The reasons of ends that programs ask for.
var errCommAbort, errCommRevoke = errors.New("ncclCommAbort"), errors.New("ncclCommRevoke")

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
