package gpucomm

import (
	"context"
	"fmt"

	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/gpu"
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
	return w.aside(&aside{put: true, local: local, peer: peer, offset: offset}, s)
}

// Signal sends a rank a signal, after those of this rank's Puts and Signals that were queued before.
func (w *Window) Signal(peer int, s gpu.Stream) error { return w.aside(&aside{peer: peer}, s) }

// Wait has a stream wait for signals, of whichever windows of the communicator. Each signal counts once, in the order
// in which its rank has sent them. The list may be used again when Wait has returned.
func (w *Window) Wait(list []Arrival, s gpu.Stream) error {
	return w.aside(&aside{waits: true, wait: list, peer: w.of.life.Rank}, s)
}

// An aside is a put, signal or wait: no call of all ranks, and without a number.
type aside struct {
	put, waits bool // neither: a signal
	peer       int
	local      mem.Region // of a put
	offset     int        // the same
	wait       []Arrival
}

// aside checks and queues an aside, in the order of a call (calls.go).
func (w *Window) aside(a *aside, s gpu.Stream) (err error) {
	ws, c := w.of, &call.Call{Kind: call.Signal, Stream: s}
	if err = ws.lock(context.Background()); err != nil {
		return ws.life.Locate(c, 0, err, ws.admission.path)
	}
	defer ws.life.Turn.Unlock()
	if err = w.takes(a); err != nil {
		return ws.life.Locate(c, 0, err, ws.admission.path)
	}
	var v visit
	var e entry
	defer func() {
		ws.order.leave(&e)
		err = ws.admission.leave(&v, c, ws.life.Turn.Seq(), err)
	}()
	if err = ws.admission.enter(&v, s); err != nil {
		return err
	}
	if err = ws.admission.admitMemory("local memory", a.local, 1); err != nil {
		return err
	}
	if e, err = ws.admission.admitStream(s, v.seen); err != nil {
		return err
	}
	if err = ws.admission.begin(c); err != nil {
		return err
	}
	if err = ws.order.begin(&e); err != nil {
		return err
	}
	if e.inOwn != nil {
		e.inOwn.uses(w.number, true)
	}
	if err = w.launch(a, s); err != nil {
		return withOldest(err)
	}
	return ws.order.end(&e)
}

// launch queues the copy of a put and the kernel that signals or waits.
func (w *Window) launch(a *aside, s gpu.Stream) error {
	ws, d := w.of, w.of.admission.driver
	stamp := call.StampOf(&call.Call{Kind: call.Signal}, call.Auto)
	var send, wait grid.Signals
	for _, x := range a.wait {
		wait[x.Peer] += uint32(x.Count)
	}
	if !a.waits {
		send[a.peer] = 1
	}
	if !a.put {
		return ws.engine.RunSignals(stamp, &send, &wait, s)
	}
	on, err := ws.copies.enter(d, s)
	if err != nil {
		return err
	}
	if n := a.local.Len(); n > 0 {
		if err := d.MemcpyAsync(uintptr(w.memory.At[a.peer])+uintptr(a.offset), a.local.Ptr(), n, on); err != nil {
			return err
		}
	}
	if err := ws.engine.RunSignals(stamp, &send, &wait, on); err != nil {
		return err
	}
	return ws.copies.leave(d, s)
}

// takes says what is wrong with an aside.
func (w *Window) takes(a *aside) error {
	ws, local, peer := w.of, a.local, a.peer
	switch {
	case ws.admission.suspended:
		return errSuspended
	case w.closed || ws.admission.closed:
		return fmt.Errorf("%w: window #%d", call.ErrClosed, w.number)
	case w.span == nil:
		return fmt.Errorf("%w: signals: window #%d has no effect: %s", call.ErrUnsupported, w.number, w.reason)
	case peer < 0 || peer >= ws.life.Size:
		return fmt.Errorf("%w: peer %d of %d ranks", call.ErrInvalid, peer, ws.life.Size)
	case a.waits:
		return mostOf(a.wait, ws.life.Size)
	case a.offset < 0 || local.Len() > w.region.Len()-a.offset:
		return fmt.Errorf("%w: %d bytes at %d of window #%d of %d bytes", call.ErrInvalid, local.Len(), a.offset, w.number,
			w.region.Len())
	case local.Len() == 0:
		return nil
	case local.IsHost():
		return fmt.Errorf("%w: host memory: put memory of the rank's GPU", call.ErrInvalid)
	case local.Dev() != ws.device.Number():
		return fmt.Errorf("%w: memory of device %d, but the rank's GPU is device %d", call.ErrInvalid, local.Dev(),
			ws.device.Number())
	case w.stalls && peer != ws.life.Rank:
		return fmt.Errorf("%w: a put into window #%d might wait for a call on rank %d's GPU that waits for the put: "+
			"register memory of gpu.Device.AllocMapped or ncclMemAlloc",
			call.ErrUnsupported, w.number, peer)
	}
	return nil
}

// mostOf says what is wrong with the signals that are to be waited for.
func mostOf(list []Arrival, ranks int) error {
	all := 0
	for _, a := range list {
		if a.Peer < 0 || a.Peer >= ranks || a.Count < 0 || a.Count > mostSignals-all {
			return fmt.Errorf("%w: wait for %d signals of rank %d, after %d others: a wait is for %d at most", call.ErrInvalid,
				a.Count, a.Peer, all, mostSignals)
		}
		all += a.Count
	}
	return nil
}
