package gpucomm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A Flat is a window's memory of all ranks, for kernels of this rank that compute where a rank's is: rank r's
// begins at Base + r*Stride. The stride is a multiple of 4 GiB. Base is 0 where there is none, and
// Reason says why, in the same words on all ranks.
type Flat struct {
	Base, Stride uint64
	Reason       string
}

// Flat maps a window's memory of all ranks once more, in one range of addresses, until Close. All ranks call
// it together, once, after Register. It needs memory of the virtual-memory API on all ranks
// (gpu.Device.AllocMapped), which begins at the same place in a page. Cost: two meetings of all ranks,
// addresses for a stride for each rank, and no memory.
func (w *Window) Flat() (Flat, error) {
	g := w.comm
	g.Drain()
	g.Life.Turn.Lock()
	defer g.Life.Turn.Unlock()
	if err := g.Life.Err(); err != nil {
		return Flat{}, g.Life.ErrorIn(call.Register.String(), fmt.Errorf("the communicator has failed before: %w", err))
	}
	if w.closed || w.span == nil {
		return Flat{Reason: w.reason}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.JoinTimeout)
	defer cancel()
	reason, err := w.lay(ctx)
	if err != nil {
		return Flat{}, g.Life.ErrorIn(call.Register.String(), errors.Join(err, w.closeFlat()))
	}
	if reason != "" {
		g.Log.Info("registered memory has no one range of addresses", "subsys", "REG", "window", w.number, "reason", reason)
		return Flat{Reason: reason}, w.closeFlat()
	}
	return Flat{Base: w.flat.Base, Stride: w.flat.Stride}, nil
}

// lay has the ranks tell each other of their memory once more, and then map it. The reason why there is no
// Flat is the same on all ranks.
func (w *Window) lay(ctx context.Context) (reason string, err error) {
	g := w.comm
	note := windowNote{Window: w.number, Bytes: w.region.Len()}
	span, err := g.net.Span(uint64(w.region.Ptr()), w.region.Len())
	if err != nil {
		note.Bad = err.Error()
	} else {
		note.Span = span.Offer()
		defer func() { err = errors.Join(err, span.Settle()) }()
	}
	notes, err := g.meet(ctx, call.Register, note)
	if err != nil {
		return "", err
	}
	offers := make([]p2p.SpanOffer, len(notes))
	for r := range notes {
		if notes[r].Bad != "" {
			return notes[r].Bad, nil
		}
		if offers[r], err = p2p.ParseSpanOffer(notes[r].Span); err != nil {
			return "", g.abandon(call.Register, err)
		}
	}
	note = windowNote{Window: w.number, Bytes: w.region.Len()}
	if w.flat, err = span.Lay(offers); err != nil {
		note.Bad = err.Error()
	}
	if notes, err = g.meet(ctx, call.Register, note); err != nil { // until then files are handed out
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
