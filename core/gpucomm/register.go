package gpucomm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/kernels/collective"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport/p2p"
)

// register is Comm.Register.
func (ws *windows) register(r mem.Region) (*Window, error) {
	var w *Window
	err := ws.meetings.together(call.Register, func(ctx context.Context) error {
		if ws.admission.suspended {
			return errSuspended
		}
		ws.sweep()
		ws.registered++
		w = &Window{of: ws, number: ws.registered, region: r}
		err := w.meet(ctx, ws.join(w))
		if err == nil {
			ws.open.insert(w)
		} else if w.span != nil {
			err = errors.Join(err, w.span.Close())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// join checks this rank's memory for a window, and makes it ready to be shared, if windows
// have an effect here. The error is what is wrong with the memory.
func (ws *windows) join(w *Window) error {
	r := w.region
	switch {
	case r.IsHost():
		return fmt.Errorf("%w: host memory: register memory of the rank's GPU", call.ErrInvalid)
	case r.Len() == 0:
		return fmt.Errorf("%w: no bytes: register live memory of the rank's GPU", call.ErrInvalid)
	case r.Dev() != ws.device.Number():
		return fmt.Errorf("%w: memory of device %d, but the rank's GPU is device %d", call.ErrInvalid, r.Dev(),
			ws.device.Number())
	}
	if o := ws.open.overlap(r); o != nil {
		return fmt.Errorf("%w: %d bytes at %#x overlap window #%d, %d bytes at %#x: close that first",
			call.ErrInvalid, r.Len(), r.Ptr(), o.number, o.region.Len(), o.region.Ptr())
	}
	if w.reason = ws.noWindows(); w.reason != "" {
		return nil
	}
	span, err := ws.net.Segment(uint64(r.Ptr()), r.Len())
	if err != nil {
		return fmt.Errorf("%w: %w", call.ErrInvalid, err)
	}
	w.span = span
	return nil
}

// noWindows says, in the same words on all ranks, why windows have no effect; "" if they
// have.
func (ws *windows) noWindows() string {
	if a, b, why, apart := ws.net.Apart(); apart {
		return fmt.Sprintf("ranks %d and %d do not reach each other's memory: %s", a, b, why)
	}
	switch {
	case ws.life.Size == 1:
		return "the communicator has one rank"
	case !ws.engine.CanWindow(collective.TwoShot):
		return fmt.Sprintf("%d ranks, and kernels in windows are for %d", ws.life.Size, collective.MaxRanks)
	}
	return ""
}

// meet has the ranks tell each other of their memory, and then open it. bad is what is wrong
// with this rank's: all ranks hear of it, and there is no window.
func (w *Window) meet(ctx context.Context, bad error) error {
	ws := w.of
	note := windowNote{Window: w.number, Bytes: w.region.Len()}
	switch {
	case bad != nil:
		note.Bad = bad.Error()
	case w.span != nil:
		note.Span = w.span.Offer()
	}
	notes, err := ws.meetings.meet(ctx, call.Register, note)
	if err != nil {
		return errors.Join(bad, err)
	}
	if bad != nil {
		return bad
	}
	offers, err := w.offers(notes)
	if err != nil || w.span == nil {
		return err
	}
	for b := range offers { // all ranks find the same
		for a := range b {
			if err := p2p.ReachSegment(&offers[a], &offers[b]); err != nil {
				return w.without(err.Error())
			}
			w.stalls = w.stalls || p2p.Stalls(&offers[a], &offers[b])
		}
	}
	return w.enter(ctx, offers)
}

// offers are the segments of all ranks, by rank, if all are good and of one length; empty where windows have no effect.
func (w *Window) offers(notes []windowNote) (offers []p2p.SegmentOffer, err error) {
	offers = make([]p2p.SegmentOffer, len(notes))
	for r := range notes {
		o := &notes[r]
		switch {
		case o.Bad != "":
			return nil, fmt.Errorf("%w: rank %d cannot: %s", call.ErrInvalid, r,
				strings.TrimPrefix(o.Bad, call.ErrInvalid.Error()+": "))
		case o.Bytes != notes[0].Bytes:
			return nil, fmt.Errorf("%w: rank 0 registers %d bytes, rank %d registers %d: give all ranks the same length",
				call.ErrInvalid, notes[0].Bytes, r, o.Bytes)
		}
		if w.span == nil {
			continue
		}
		if offers[r], err = p2p.ParseSegmentOffer(o.Span); err != nil {
			return nil, w.of.meetings.abandon(call.Register, err)
		}
	}
	return offers, nil
}

// enter opens the segments of all ranks. If a rank cannot, the window has no effect on any.
func (w *Window) enter(ctx context.Context, offers []p2p.SegmentOffer) (err error) {
	ws, failed := w.of, ""
	w.memory = grid.Window{At: make([]uint64, len(offers)), Bytes: w.region.Len()}
	for r := range offers {
		if w.memory.At[r], err = w.span.Open(&offers[r]); err != nil {
			failed = err.Error()
			break
		}
	}
	notes, err := ws.meetings.meet(ctx, call.Register, windowNote{Window: w.number, Bytes: w.region.Len(), Bad: failed})
	if err != nil {
		return err
	}
	for r := range notes {
		if why := notes[r].Bad; why != "" {
			return w.without(why)
		}
	}
	if err := errors.Join(w.span.Settle(), ws.copies.open(ws.device, ws.net.Context()),
		ws.engine.PrepareAside(w.region.Len()), ws.engine.PrepareSignals()); err != nil {
		return ws.meetings.abandon(call.Register, err)
	}
	ws.log.Info("memory registered", "subsys", "REG", "window", w.number, "bytes", w.region.Len(), "device",
		ws.device.Number())
	return nil
}

// without makes w a window without effect. All ranks come here for the same reason.
func (w *Window) without(reason string) error {
	w.reason = strings.TrimPrefix(reason, "p2p: ")
	s := w.span
	w.span = nil
	w.of.log.Info("memory cannot be registered", "subsys", "REG", "window", w.number, "reason", w.reason)
	if err := s.Close(); err != nil {
		return w.of.meetings.abandon(call.Register, err)
	}
	return nil
}

// At is the address of a rank's part of the window for this rank's kernels and copies, until Close; 0 if
// the window has no effect.
func (w *Window) At(peer int) uintptr {
	var at uintptr
	w.of.life.Turn.Ask(func() {
		if !w.closed && !w.of.admission.closed && peer >= 0 && peer < len(w.memory.At) && w.span != nil {
			at = uintptr(w.memory.At[peer])
		}
	})
	return at
}

// Close ends the use of a window's memory. All ranks call it together, as they do Register. It waits until what this
// rank has queued is done, and then for the other ranks; when it has returned without error nobody uses the memory any
// more. While a graph of any rank holds operations in the window, Close is an error on all ranks (ErrInvalid), and the
// window stays open. After a failure Close waits for no other rank; the communicator's Close does, and after that the
// memory may be freed. A communicator that is closed or has failed needs no Close of its windows.
func (w *Window) Close() error {
	err := w.of.meetings.inTurn(w.close)
	if err != nil {
		return w.of.life.ErrorIn(call.CloseWindow.String(), err)
	}
	return nil
}

// close is Close in the turn.
func (w *Window) close(ctx context.Context) error {
	ws := w.of
	if w.closed || ws.admission.closed { // what is left, the communicator gives back
		return nil
	}
	err := ws.order.finish()
	well := err == nil && ws.watch.verdict() == nil
	if well { // when all have met, no kernel of any rank is in the window
		var notes []windowNote
		note := windowNote{Window: w.number, Held: ws.order.holders(w.number)}
		notes, err = ws.meetings.meet(ctx, call.CloseWindow, note)
		well = err == nil
		for r := range notes {
			if n := notes[r].Held; n > 0 {
				return fmt.Errorf("%w: %d graphs of rank %d hold operations in window #%d: destroy them first; the window stays "+
					"open", call.ErrInvalid, n, r, w.number)
			}
		}
	}
	if !well { // kernels of other ranks may be in it still: the communicator's Close waits for those ranks
		return errors.Join(err, ws.engine.End())
	}
	w.closed = true
	ws.forget(w)
	err = errors.Join(err, w.closeFlat(), ws.closeSpan(w))
	_, e := ws.meetings.meet(ctx, call.CloseWindow, windowNote{Window: w.number}) // when all have met, nobody has it open
	if err = errors.Join(err, e); err != nil {
		return err
	}
	return nil
}
