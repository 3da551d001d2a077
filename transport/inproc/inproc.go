// Package inproc is the transport between ranks that are goroutines of one process. It
// is for package paths and for tests. A connection is a fifo queue in ordinary memory.
// The trap: a rank is found by its address in this process alone.
package inproc

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/process"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// listeners are the transports of this process that listen, by address.
var listeners = process.Registry[sync.Map]{} // string → *Transport

// Transport is the in-process transport of one rank of one communicator.
type Transport struct {
	cfg     transport.Config
	addr    string // random, "" before Listen
	arrived *listen.Arrivals[*fifo.Consumer]

	mu     sync.Mutex
	ends   []interface{ Close() error }
	closed bool
}

// New makes a transport. It allocates nothing else until Listen.
func New(cfg transport.Config) *Transport {
	if cfg.Guard == nil {
		cfg.Guard = new(fifo.Guard)
	}
	return &Transport{cfg: cfg, arrived: listen.NewArrivals[*fifo.Consumer](cfg.Left)}
}

// Name is "inproc".
func (t *Transport) Name() string { return "inproc" }

// Reach is nil if both ranks are in one process. Ranks that say that they are on different
// hosts (RINGO_HOSTID) are taken at their word.
func (t *Transport) Reach(a, b transport.Info) error {
	if a.Host != b.Host {
		return errors.New("inproc: different hosts")
	}
	if a.Process != b.Process {
		return errors.New("inproc: different processes")
	}
	return nil
}

// Listen makes this rank known in its process.
func (t *Transport) Listen() ([]byte, error) {
	if err := geometry(t.cfg.Limits).Check(); err != nil {
		return nil, fmt.Errorf("inproc: listen: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("inproc: listen: %w", fifo.ErrClosed)
	}
	if t.addr == "" {
		t.addr = rand.Text()
		listeners.In(nil).Store(t.addr, t)
	}
	return []byte(t.addr), nil
}

// Dial makes a queue and leaves its receiving end with peer.
func (t *Transport) Dial(peer transport.Info, addr []byte) (transport.SendConn, error) {
	fail := func(err error) (transport.SendConn, error) {
		return nil, fmt.Errorf("inproc: dial rank %d: %w", peer.Rank, err)
	}
	v, ok := listeners.In(nil).Load(string(addr))
	if !ok {
		return fail(fmt.Errorf("nobody listens there any more: %w", transport.ErrClosed))
	}
	to := v.(*Transport)
	switch {
	case subtle.ConstantTimeCompare(t.cfg.Key, to.cfg.Key) == 0 || to.cfg.Self.Rank != peer.Rank:
		return fail(fmt.Errorf("its address is of another communicator"))
	case t.cfg.Limits != to.cfg.Limits:
		return fail(fmt.Errorf("it has queues of %+v and this rank of %+v", to.cfg.Limits, t.cfg.Limits))
	}
	p, c, err := fifo.NewLocal(geometry(t.cfg.Limits), waiting(t.cfg), waiting(to.cfg))
	if err != nil {
		return fail(err)
	}
	if !t.keep(p) || !to.keep(c) || !to.arrived.Put(t.cfg.Self.Rank, c) {
		_ = p.Close()
		return fail(fifo.ErrClosed)
	}
	return p, nil
}

// Accept waits until peer has dialled.
func (t *Transport) Accept(peer transport.Info) (transport.RecvConn, error) {
	c, err := t.arrived.Take(peer.Rank, t.cfg.Guard)
	if err != nil {
		return nil, fmt.Errorf("inproc: accept rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

// keep remembers an end until Close. It returns false after Close.
func (t *Transport) keep(end interface{ Close() error }) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.ends = append(t.ends, end)
	}
	return !t.closed
}

// Close ends all connections.
func (t *Transport) Close() error {
	t.mu.Lock()
	ends := t.ends
	t.ends, t.closed = nil, true
	t.mu.Unlock()
	listeners.In(nil).CompareAndDelete(t.addr, t)
	t.arrived.Close()
	for _, e := range ends {
		_ = e.Close()
	}
	return nil
}

func geometry(l transport.Limits) fifo.Geometry {
	return fifo.Geometry{Slots: l.Slots, SlotBytes: l.SlotBytes}
}

func waiting(cfg transport.Config) fifo.Waiting {
	return fifo.Waiting{Guard: cfg.Guard, Spin: cfg.Spin}
}
