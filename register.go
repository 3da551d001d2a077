package ringo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ringo-go/ringo/engine/grid"
	"github.com/ringo-go/ringo/transport/p2p"
)

// A Window is memory of all ranks' GPUs that a communicator's collectives read and
// write where it is; see Comm.Register.
type Window struct {
	comm   *Comm
	number int // on its communicator, the same on all ranks
	region Region
	span   *p2p.Span   // nil if the window has no effect
	memory grid.Window // of all ranks, as this one sees it
	reason string
	closed bool
}

// Register makes a span of the rank's GPU memory known to all ranks, so that
// collectives on it move data from GPU to GPU without staging. All ranks call it
// together, with spans of the same length, in the order of their other calls; it
// waits for them, at most Config.JoinTimeout, so ranks of one process call it from
// a goroutine each. The memory may be any of the GPU's, of gpu.Device.Alloc or the
// caller's own, the virtual-memory API included, but not part of two windows.
//
// A collective may use registered memory if the buffers that its kernels reach lie
// wholly in windows, at the same offset of the same window on all ranks: In of
// ReduceScatter, Out of AllGather, AlltoAll and Broadcast, both of AllReduce. Ranks
// that break this get the error of calls that do not match. If Config.Algo is "window"
// or "copies" the same holds for In of Gather, Out of Scatter, and both of Reduce,
// whose Out then has to be given on all ranks; otherwise they do not use windows, so
// that a root may be in place.
//
// On the call's stream the memory is the rank's own before and behind a collective,
// as without windows; what else is done to it meanwhile, other ranks may see. A
// communicator of Split has no windows.
//
// Where GPUs do not reach each other, or the memory is of a kind that cannot be
// shared, the Window has no effect, and Reason says why. What is wrong with the
// memory of one rank is an error on all (ErrInvalid), and changes nothing.
func (c *Comm) Register(r Region) (*Window, error) {
	c.queue.drain()
	c.run.Lock()
	defer c.run.Unlock()
	if c.dev == nil || c.dev.engine == nil {
		return nil, c.errorIn(opRegister, fmt.Errorf("%w: GPU memory: %s", ErrUnsupported, c.noDevice))
	}
	if err := c.Err(); err != nil {
		return nil, c.errorIn(opRegister, fmt.Errorf("the communicator has failed before: %w", err))
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.JoinTimeout)
	defer cancel()
	d := c.dev
	d.registered++
	w := &Window{comm: c, number: d.registered, region: r}
	bad := d.join(w)
	err := w.meet(ctx, bad)
	if err == nil {
		d.windows.insert(w)
		return w, nil
	}
	if w.span != nil {
		err = errors.Join(err, w.span.Close())
	}
	return nil, c.errorIn(opRegister, err)
}

// join finds out what this rank can tell the others of a window's memory. The
// error is what is wrong with it.
func (d *device) join(w *Window) error {
	r := w.region
	switch {
	case r.IsHost():
		return fmt.Errorf("%w: host memory: register memory of the rank's GPU", ErrInvalid)
	case r.Len() == 0:
		return fmt.Errorf("%w: no bytes: register live memory of the rank's GPU", ErrInvalid)
	case r.Dev() != d.gpu.Number():
		return fmt.Errorf("%w: memory of device %d, but the rank's GPU is device %d", ErrInvalid, r.Dev(), d.gpu.Number())
	}
	if o := d.windows.overlap(r); o != nil {
		return fmt.Errorf("%w: %d bytes at %#x overlap window #%d, %d bytes at %#x: close that first",
			ErrInvalid, r.Len(), r.Ptr(), o.number, o.region.Len(), o.region.Ptr())
	}
	if w.reason = d.noWindows(); w.reason != "" {
		return nil
	}
	n := d.net
	span, err := p2p.NewSpan(p2p.Config{Driver: n.driver, Context: n.ctx, Device: n.dev, Self: n.self, Bytes: r.Len()}, uint64(r.Ptr()))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	w.span = span
	return nil
}

// noWindows says why windows have no effect, the same on all ranks; "" if they have.
func (d *device) noWindows() string {
	n := d.net
	for _, i := range n.pairs() {
		if n.paths[i] != overP2P {
			return fmt.Sprintf("ranks %d and %d do not reach each other's memory: %s", i/n.size, i%n.size, n.against[i])
		}
	}
	switch {
	case n.size == 1:
		return "the communicator has one rank"
	case !d.engine.CanWindow(grid.TwoShot):
		return fmt.Sprintf("%d ranks, and kernels in windows are for %d", n.size, grid.MaxDirect)
	}
	return ""
}

// meet has the ranks tell each other of their memory, and open it.
func (w *Window) meet(ctx context.Context, bad error) error {
	c, d := w.comm, w.comm.dev
	note := windowNote{Op: opRegister, Window: w.number, Bytes: w.region.Len()}
	switch {
	case bad != nil:
		note.Bad = bad.Error()
	case w.span != nil:
		note.Span = w.span.Offer()
	}
	notes, err := c.meet(ctx, note)
	if err != nil {
		return errors.Join(bad, err)
	}
	if bad != nil {
		return bad
	}
	offers := make([]p2p.SpanOffer, c.size)
	for r := range notes {
		o := &notes[r]
		switch {
		case o.Bad != "":
			return fmt.Errorf("%w: rank %d cannot: %s", ErrInvalid, r, strings.TrimPrefix(o.Bad, ErrInvalid.Error()+": "))
		case o.Bytes != notes[0].Bytes:
			return fmt.Errorf("%w: rank 0 registers %d bytes, rank %d registers %d: give all ranks the same length", ErrInvalid, notes[0].Bytes, r, o.Bytes)
		}
		if w.span == nil {
			continue
		}
		if offers[r], err = p2p.ParseSpanOffer(o.Span); err != nil {
			return c.abandon(opRegister, err)
		}
	}
	if w.span == nil {
		return nil
	}
	for b := range offers { // all ranks find the same
		for a := range b {
			if err := p2p.ReachSpan(&offers[a], &offers[b]); err != nil {
				return w.without(err.Error())
			}
		}
	}
	var failed string
	w.memory = grid.Window{At: make([]uint64, c.size), Bytes: w.region.Len()}
	for r := range offers {
		if w.memory.At[r], err = w.span.Open(&offers[r]); err != nil {
			failed = err.Error()
			break
		}
	}
	notes, err = c.meet(ctx, windowNote{Op: opRegister, Window: w.number, Bytes: w.region.Len(), Bad: failed})
	if err != nil {
		return err
	}
	for r := range notes {
		if why := notes[r].Bad; why != "" {
			return w.without(why)
		}
	}
	if err := errors.Join(w.span.Settle(), d.detour.open(d.gpu)); err != nil {
		return c.abandon(opRegister, err)
	}
	c.log.Info("memory registered", "subsys", "REG", "window", w.number, "bytes", w.region.Len(), "device", d.gpu.Number())
	return nil
}

// without leaves the window without effect. All ranks come here alike.
func (w *Window) without(reason string) error {
	w.reason = strings.TrimPrefix(reason, "p2p: ")
	s := w.span
	w.span = nil
	w.comm.log.Info("memory cannot be registered", "subsys", "REG", "window", w.number, "reason", w.reason)
	if err := s.Close(); err != nil {
		return w.comm.abandon(opRegister, err)
	}
	return nil
}

// Region is this rank's memory.
func (w *Window) Region() Region { return w.region }

// Reason says, on all ranks in the same words, why the window has no effect; "" if
// it has.
func (w *Window) Reason() string { return w.reason }

// Close ends the use of a window's memory. All ranks call it together, as they do
// Register. It waits until what this rank has queued is done, and then for the
// other ranks; when it has returned without error nobody uses the memory any more.
// Graphs that hold the window must not be launched again. A communicator that is
// closed or has failed needs no Close of its windows, but then their memory may be
// freed when all ranks have closed theirs.
func (w *Window) Close() error {
	c := w.comm
	c.queue.drain()
	c.run.Lock()
	defer c.run.Unlock()
	if w.closed || c.closed.Load() { // what is left, the communicator gives back
		return nil
	}
	w.closed = true
	d := c.dev
	d.windows.remove(w)
	err := d.finish(&c.guard)
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.JoinTimeout)
	defer cancel()
	well := err == nil && c.verdict() == nil
	if well { // no kernel of any rank is in the window
		if _, err = c.meet(ctx, windowNote{Op: opClose, Window: w.number}); err != nil {
			well = false
		}
	}
	if w.span != nil {
		err = errors.Join(err, w.span.Close())
	}
	if well { // nobody has it open
		_, e := c.meet(ctx, windowNote{Op: opClose, Window: w.number})
		err = errors.Join(err, e)
	}
	if err != nil {
		return c.errorIn(opClose, err)
	}
	return nil
}
