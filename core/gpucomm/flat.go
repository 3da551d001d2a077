package gpucomm

import (
	"context"
	"errors"
	"strings"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A Flat is all ranks' memory of a window in one range of addresses, for kernels that compute these: rank r's begins at
// Base + r*Stride. The stride is a multiple of 4 GiB. Base is 0 where there is none, and Reason says why, in the same
// words on all ranks.
type Flat struct {
	Base, Stride uint64
	Reason       string
}

// Flat maps a window's memory of all ranks once more, in one range of addresses, until Close. All ranks call
// it together, once, after Register. It needs memory of the virtual-memory API on all ranks
// (gpu.Device.AllocMapped), which begins at the same place in a page. Cost: two meetings of all ranks,
// addresses for a stride for each rank, and no memory.
func (w *Window) Flat() (Flat, error) {
	ws := w.of
	var f Flat
	err := ws.meetings.together(call.Register, func(ctx context.Context) error {
		if w.closed || w.span == nil {
			f.Reason = w.reason
			return nil
		}
		reason, err := w.lay(ctx)
		if err != nil {
			return errors.Join(err, w.closeFlat())
		}
		if reason != "" {
			f.Reason = reason
			ws.log.Info("registered memory has no one range of addresses", "subsys", "REG", "window", w.number, "reason", reason)
			return w.closeFlat()
		}
		f.Base, f.Stride = w.flat.Base, w.flat.Stride
		return nil
	})
	if err != nil { // f is not this goroutine's if its turn is yet to come
		return Flat{}, err
	}
	return f, nil
}

// lay has the ranks tell each other of their memory once more, and then map it. The reason why there is no
// Flat is the same on all ranks.
func (w *Window) lay(ctx context.Context) (reason string, err error) {
	ws := w.of
	note := windowNote{Window: w.number, Bytes: w.region.Len()}
	span, err := ws.net.Segment(uint64(w.region.Ptr()), w.region.Len())
	if err != nil {
		note.Bad = err.Error()
	} else {
		note.Span = span.Offer()
		defer func() { err = errors.Join(err, span.Settle()) }()
	}
	notes, err := ws.meetings.meet(ctx, call.Register, note)
	if err != nil {
		return "", err
	}
	offers := make([]p2p.SegmentOffer, len(notes))
	for r := range notes {
		if notes[r].Bad != "" {
			return notes[r].Bad, nil
		}
		if offers[r], err = p2p.ParseSegmentOffer(notes[r].Span); err != nil {
			return "", ws.meetings.abandon(call.Register, err)
		}
	}
	note = windowNote{Window: w.number, Bytes: w.region.Len()}
	if w.flat, err = span.Lay(offers); err != nil {
		note.Bad = err.Error()
	}
	if notes, err = ws.meetings.meet(ctx, call.Register, note); err != nil { // until then ranks hand out files
		return "", err
	}
	for r := range notes {
		if why := notes[r].Bad; why != "" {
			return strings.TrimPrefix(why, "p2p: "), nil
		}
	}
	return "", nil
}

func (w *Window) closeFlat() error {
	f := w.flat
	w.flat = nil
	if f == nil {
		return nil
	}
	return f.Close()
}
