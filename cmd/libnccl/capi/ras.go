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

// A watched is what a communicator tells whoever asks NCCL's RAS.
type watched struct {
	lease  *ras.Lease                    // nil where RAS is off
	cards  [][]byte                      // of all ranks, where they are known before the communicator is open
	counts [len(ras.Kinds)]atomic.Uint64 // of collectives that were called
	quits  atomic.Bool                   // the program has aborted the communicator
}

// countedAs is the place of a kind in counts, plus one; 0 is for kinds that RAS does not count.
var countedAs = [...]int8{ringo.KindBroadcast: 1, ringo.KindReduce: 2, ringo.KindAllGather: 3, ringo.KindReduceScatter: 4, ringo.KindAllReduce: 5}

// counter is the count of a kind, nil if RAS does not count it. Only RAS reads it.
func (w *watched) counter(kind ringo.Kind) *atomic.Uint64 {
	if w.lease == nil || int(kind) >= len(countedAs) || countedAs[kind] == 0 {
		return nil
	}
	return &w.counts[countedAs[kind]-1]
}

// count is one more call of a kind.
func (w *watched) count(kind ringo.Kind) {
	if n := w.counter(kind); n != nil {
		n.Add(1)
	}
}

// answers is the agent of RAS, nil where it is switched off.
func (l *Library) answers(cfg *ringo.Config) *ras.Agent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.env.ras() {
		return nil
	}
	if l.agent == nil {
		addr, factor := l.env.rasOptions()
		version, _ := l.env.version()
		tls, err := bootstrap.TLSFromEnv(l.env.get)
		if err != nil { // the communicator says so
			return nil
		}
		l.agent = ras.New(ras.Options{Addr: addr, Version: version, Driver: l.driverVersion, TLS: tls, Factor: factor, Log: cfg.Log})
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

// lease has the agent live as long as a communicator, and gives its Config the rank's card. near is an address of the job, if one is known.
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

// tells has the agent answer for a communicator that is open.
func (c *comm) tells(r *ringo.Comm) {
	if c.lease == nil {
		return
	}
	cards := c.cards
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
	c.lease.Serve(&ras.Member{
		Comm: fmt.Sprintf("%s-%x", r.History().Comm, sum.Sum(nil)[:8]), Rank: r.Rank(), Size: r.Size(), Cards: cards, Now: func() ras.Now { return c.now(r) },
	})
}

// now is how the communicator is. It does not wait.
func (c *comm) now(r *ringo.Comm) (n ras.Now) {
	for i := range n.Counts {
		n.Counts[i] = c.counts[i].Load()
	}
	state, well, err := c.known()
	if well != nil {
		err = well.Failure()
		state = ResultOf(err)
	}
	if errors.Is(err, ringo.ErrClosed) || errors.Is(err, errEnding) || state == InProgress { // which detectors take for a failure
		state = Success
	}
	n.Async = int(state)
	if died, ok := errors.AsType[*bootstrap.Failure](err); ok && died.Died {
		if e, ok := errors.AsType[*ringo.Error](err); ok {
			n.Died = e.Culprits
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n.Finalized, n.Destroyed, n.Aborted = c.state.barred == errFinalized, c.state.closing, c.quits.Load()
	return n
}
