package capi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/cmd/libnccl/ras"
	"github.com/ringo-go/ringo/gpu"
)

// A watched holds a communicator's answers to questions of NCCL's RAS.
type watched struct {
	lease  *ras.Lease                    // nil where RAS is off
	cards  [][]byte                      // all ranks' cards, if known before the communicator is open
	counts [len(ras.Kinds)]atomic.Uint64 // of collectives that were called
	quits  atomic.Bool                   // the program has aborted the communicator
}

// countedAs is the place of a kind in counts, plus one; 0 is for kinds that RAS does not count.
var countedAs = [...]int8{ringo.KindBroadcast: 1, ringo.KindReduce: 2, ringo.KindAllGather: 3,
	ringo.KindReduceScatter: 4, ringo.KindAllReduce: 5}

// counter is the count of a kind, nil if RAS does not count it. Only RAS reads it.
func (w *watched) counter(kind ringo.Kind) *atomic.Uint64 {
	if w.lease == nil || int(kind) >= len(countedAs) || countedAs[kind] == 0 {
		return nil
	}
	return &w.counts[countedAs[kind]-1]
}

// count counts a call of a kind.
func (w *watched) count(kind ringo.Kind) {
	if n := w.counter(kind); n != nil {
		n.Add(1)
	}
}

// answers is the agent of RAS, nil where RAS is switched off.
func (l *Library) answers(cfg *ringo.Config) *ras.Agent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.env.ras() {
		return nil
	}
	if l.agent == nil {
		addr, factor := l.env.rasOptions()
		l.fix(rasAddr, rasFactor)
		version, _ := l.env.version()
		tls, err := bootstrap.TLSFromEnv(l.env.get)
		if err != nil { // the communicator says so
			return nil
		}
		l.agent = ras.New(ras.Options{Addr: addr, Version: version, Driver: l.driverVersion, TLS: tls, Factor: factor,
			Log: cfg.Log})
	}
	return l.agent
}

// driverVersion is the version of the driver that is open, 0 if none is.
func (l *Library) driverVersion() int {
	l.mu.Lock()
	m := l.machine
	l.mu.Unlock()
	if m == nil {
		return 0
	}
	d, err := m.Device(0)
	if err != nil {
		return 0
	}
	v, _ := d.Driver().DriverGetVersion()
	return v
}

// lease keeps the agent alive as long as a communicator, and puts the rank's card into the Config. near is an address
// of the job, "" if none is known. The lease is nil where RAS is off.
func (l *Library) lease(cfg *ringo.Config, near string) *ras.Lease {
	a := l.answers(cfg)
	if a == nil {
		return nil
	}
	lease := a.Lease(near)
	cfg.Card = l.card(lease, cfg.Device)
	return lease
}

// card is the card of a rank with a GPU, or without one.
func (l *Library) card(lease *ras.Lease, d *gpu.Device) []byte {
	device, nvml := ras.OnHost, ras.OnHost
	if d != nil {
		device = d.Number()
		nvml = l.env.nvml(device)
	}
	c := lease.Card(device, nvml)
	return c.Encode()
}

// tells has the agent answer for an open communicator, with the state that now returns.
func (w *watched) tells(r *ringo.Comm, now func() ras.Now) {
	if w.lease == nil {
		return
	}
	cards := w.cards
	if cards == nil {
		cards = r.Cards()
	}
	if cards == nil { // a rank died before they were exchanged
		return
	}
	sum := sha256.New()
	for _, b := range cards {
		sum.Write(b)
		sum.Write([]byte{0})
	}
	w.lease.Serve(&ras.Member{Comm: fmt.Sprintf("%s-%x", r.History().Comm, sum.Sum(nil)[:8]), Rank: r.Rank(),
		Size: r.Size(), Cards: cards, Now: now})
}

// now is the answer for a communicator with a state and its error.
func (w *watched) now(state Result, err error) (n ras.Now) {
	for i := range n.Counts {
		n.Counts[i] = w.counts[i].Load()
	}
	if errors.Is(err, ringo.ErrClosed) || errors.Is(err, errEnding) || state == InProgress {
		// which detectors take for a failure
		state = Success
	}
	n.Async = int(state)
	if died, ok := errors.AsType[*bootstrap.Failure](err); ok && died.Died {
		if e, ok := errors.AsType[*ringo.Error](err); ok {
			n.Died = e.Culprits
		}
	}
	n.Aborted = w.quits.Load()
	return n
}

// is is the answer for the communicator at this moment. It does not wait.
func (c *comm) is() ras.Now {
	state, well, err := c.known()
	if well != nil {
		err = well.Failure()
		state = ResultOf(err)
	}
	n := c.now(state, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	n.Finalized, n.Destroyed = c.state.barred == errFinalized, c.state.closing
	return n
}

// A Watch has RAS answer for a communicator of ringo.h, which is not a comm of this package.
type Watch struct {
	watched
	closes atomic.Bool
}

// Watch begins a communicator's lease of the agent of RAS, and puts the rank's card into the Config. Where RAS is off
// the Watch does nothing.
func (l *Library) Watch(cfg *ringo.Config) *Watch {
	w := new(Watch)
	base, err := l.config()
	if err != nil || cfg.ID.Check() != nil { // communicators of nccl.h report err, opening this one reports the ID
		return w
	}
	base.ID = cfg.ID
	w.lease = l.lease(&base, cfg.ID.Addr())
	cfg.Card = base.Card
	return w
}

// Opened has the agent answer for the communicator.
func (w *Watch) Opened(r *ringo.Comm) {
	w.tells(r, func() ras.Now {
		err := r.Failure()
		n := w.now(ResultOf(err), err)
		n.Destroyed = w.closes.Load()
		return n
	})
}

// Called counts a call of a kind.
func (w *Watch) Called(kind ringo.Kind) { w.count(kind) }

// Aborts notes that the program aborts the communicator.
func (w *Watch) Aborts() { w.quits.Store(true) }

// Closes notes that the program closes the communicator.
func (w *Watch) Closes() { w.closes.Store(true) }

// End ends the communicator's lease.
func (w *Watch) End() { w.lease.End() }
