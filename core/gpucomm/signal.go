package gpucomm

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/mem"
)

// An Arrival is a number of signals from a rank.
type Arrival struct{ Peer, Count int }

// mostSignals is how many signals one Wait may be for.
const mostSignals = 1 << 24

// Put copies local memory of the rank's GPU into a rank's part of the window, at an offset in bytes, and then sends
// that rank a signal: when the rank has waited for the signal the data are there. The rank takes no part otherwise. Put
// only queues both on a stream; behind them local is the caller's again. They take their place among the communicator's
// operations, so a Wait that was queued before holds up a Put on another stream too. Put may be captured: each replay
// of the graph puts and signals.
func (w *Window) Put(local mem.Region, peer, offset int, s gpu.Stream) error {
	return w.aside(s, local, peer, func(e entry) error {
		if offset < 0 || local.Len() > w.region.Len()-offset {
			return fmt.Errorf("%w: %d bytes at %d of window #%d of %d bytes", call.ErrInvalid, local.Len(), offset, w.number,
				w.region.Len())
		}
		d := w.of.Device.Driver()
		return w.of.order.after(&e, func() error {
			return w.of.order.copyStream.instead(d, s, func(s gpu.Stream) error {
				if n := local.Len(); n > 0 {
					if err := d.MemcpyAsync(uintptr(w.memory.At[peer])+uintptr(offset), local.Ptr(), n, s); err != nil {
						return err
					}
				}
				return w.of.signals(s, peer, nil)
			})
		})
	})
}

// Signal sends a rank a signal, after those of this rank's Puts and Signals that were queued before.
func (w *Window) Signal(peer int, s gpu.Stream) error {
	return w.aside(s, mem.Region{}, peer, func(e entry) error {
		return w.of.order.after(&e, func() error { return w.of.signals(s, peer, nil) })
	})
}

// Wait has a stream wait for signals, of whichever windows of the communicator. Each signal counts once, in the order
// in which its rank has sent them. The list may be used again when Wait has returned.
func (w *Window) Wait(list []Arrival, s gpu.Stream) error {
	return w.aside(s, mem.Region{}, w.of.Life.Rank, func(e entry) error {
		all := 0
		for _, a := range list {
			if a.Peer < 0 || a.Peer >= w.of.Life.Size || a.Count < 0 || a.Count > mostSignals-all {
				return fmt.Errorf("%w: wait for %d signals of rank %d, after %d others: a wait is for %d at most", call.ErrInvalid,
					a.Count, a.Peer, all, mostSignals)
			}
			all += a.Count
		}
		return w.of.order.after(&e, func() error { return w.of.signals(s, -1, list) })
	})
}

// signals queues a signal to a rank, none to -1, and the wait for those of the list.
func (ws *windows) signals(s gpu.Stream, peer int, list []Arrival) error {
	var send, wait grid.Signals
	if peer >= 0 {
		send[peer] = 1
	}
	for _, a := range list {
		wait[a.Peer] += uint32(a.Count)
	}
	return ws.engine.RunSignals(call.StampOf(&call.Call{Kind: call.Signal}, call.Auto), &send, &wait, s)
}

// aside calls f, which queues a put, signal or wait: no call of all ranks, and without a number.
func (w *Window) aside(s gpu.Stream, local mem.Region, peer int, f func(entry) error) error {
	ws, c := w.of, &call.Call{Kind: call.Signal, Stream: s}
	if err := ws.Lock(context.Background()); err != nil {
		return ws.Life.Locate(c, 0, err, ws)
	}
	defer ws.Life.Turn.Unlock()
	if err := w.takes(local, peer); err != nil {
		return ws.Life.Locate(c, 0, err, ws)
	}
	return ws.known.with(c, func(seen cuda.Sight) error {
		err := ws.known.admitMemory("local memory", local, 1)
		if err != nil {
			return err
		}
		e, err := ws.known.admitStream(s, seen)
		if err != nil {
			return err
		}
		if err := ws.Life.Begin(c, ws); err != nil {
			return ws.known.refusal(c, err)
		}
		err = f(e)
		ws.order.uses(&e, &placement{in: spot{window: w}}, true)
		return err
	})
}

// takes says why a window takes no signals, none for a peer, or no put of local memory.
func (w *Window) takes(local mem.Region, peer int) error {
	ws := w.of
	switch {
	case ws.upkeep.suspended:
		return errSuspended
	case w.closed || ws.upkeep.closed:
		return fmt.Errorf("%w: window #%d", call.ErrClosed, w.number)
	case w.span == nil:
		return fmt.Errorf("%w: signals: window #%d has no effect: %s", call.ErrUnsupported, w.number, w.reason)
	case peer < 0 || peer >= ws.Life.Size:
		return fmt.Errorf("%w: peer %d of %d ranks", call.ErrInvalid, peer, ws.Life.Size)
	case local.Len() == 0:
		return nil
	case local.IsHost():
		return fmt.Errorf("%w: host memory: put memory of the rank's GPU", call.ErrInvalid)
	case local.Dev() != ws.Device.Number():
		return fmt.Errorf("%w: memory of device %d, but the rank's GPU is device %d", call.ErrInvalid, local.Dev(),
			ws.Device.Number())
	case w.stalls && peer != ws.Life.Rank:
		return fmt.Errorf("%w: a put into window #%d might wait for a call on rank %d's GPU that waits for the put: "+
			"register memory of gpu.Device.AllocMapped or ncclMemAlloc",
			call.ErrUnsupported, w.number, peer)
	}
	return nil
}
