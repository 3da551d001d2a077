package gpucomm

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringo-go/ringo/core/call"
)

// A Footprint is the memory that a communicator has on its rank's GPU. Kernels' code and what the
// driver rounds up are not in it. A nil Footprint is that of a communicator without GPU memory.
//
// A part of the memory can be given back for a time, between Suspend and Resume: scratch memory, and
// the queues between GPUs that reach each other. Both keep their addresses, so graphs that hold
// operations may be launched again after Resume.
type Footprint struct{ g *Comm }

// Footprint returns the communicator's Footprint.
func (g *Comm) Footprint() *Footprint { return &Footprint{g} }

// Bytes is how many bytes stay until Close, fixed, and how many more Suspend gives back, or has given back, mapped. The
// latter grow with the calls that need them.
func (f *Footprint) Bytes() (fixed, mapped int) {
	if f == nil {
		return 0, 0
	}
	g := f.g
	g.Life.Turn.Ask(func() {
		if g.admission.closed {
			return
		}
		fixed, mapped = g.net.Fixed()+g.engine.Fixed(), g.net.Mapped()+g.engine.Mapped()
		for _, m := range g.estate.rooms {
			mapped += m.Mapped()
		}
	})
	return fixed, mapped
}

// Suspend gives back the mapped bytes. All ranks call it together; it waits for them and for what they have queued.
// Until Resume calls on GPU memory are refused, and no graph that holds operations of the communicator may be launched.
func (f *Footprint) Suspend() error {
	if f == nil {
		return nil
	}
	g := f.g
	return g.windows.meetings.together(call.Suspend, func(ctx context.Context) error {
		if g.admission.suspended {
			return errSuspended
		}
		if err := errors.Join(g.order.finish(), g.watch.verdict()); err != nil {
			return err
		}
		if _, err := g.windows.meetings.meet(ctx, call.Suspend, windowNote{}); err != nil { // no kernel of any rank runs
			return err
		}
		g.admission.suspended = true
		errs := []error{g.net.Suspend(), g.engine.Suspend()}
		for _, m := range g.estate.rooms {
			errs = append(errs, m.Suspend())
		}
		return g.windows.meetings.abandon(call.Suspend, errors.Join(errs...))
	})
}

// Resume ends Suspend. All ranks call it together. If a rank's GPU has too little memory, the communicator fails.
func (f *Footprint) Resume() error {
	if f == nil {
		return nil
	}
	g := f.g
	return g.windows.meetings.together(call.Resume, func(ctx context.Context) error {
		if !g.admission.suspended {
			return fmt.Errorf("%w: the communicator is not suspended", call.ErrInvalid)
		}
		if _, err := g.windows.meetings.meet(ctx, call.Resume, windowNote{}); err != nil { // all have given theirs back
			return err
		}
		errs := []error{g.net.Resume(), g.engine.Resume()}
		for _, m := range g.estate.rooms {
			errs = append(errs, m.Resume())
		}
		if err := g.windows.meetings.abandon(call.Resume, errors.Join(errs...)); err != nil {
			return err
		}
		if _, err := g.windows.meetings.meet(ctx, call.Resume, windowNote{}); err != nil { // all have theirs again
			return err
		}
		g.admission.suspended = false
		return nil
	})
}
