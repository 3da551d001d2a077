package transporttest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/inproc"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// A Card is a transport between ranks of one process that plays a network card: it is a
// transport.Placer, and moves bytes straight between the placed slots of two ranks, in host memory or
// in memory that is exported by a file (Linux). Other connections are inproc's. It moves a slot as
// late as it may, and in pieces of its own choice, so that who fills or reads a slot too early is found.
type Card struct {
	transport.Transport
	cfg    transport.Config
	refuse func(transport.Memory) error
	placed *listen.Arrivals[*wire]

	mu      sync.Mutex
	known   []registered
	wires   []*wire
	address string
}

// A registered is memory that was registered with a Card.
type registered struct {
	mem.Region
	bytes []byte // the same memory as this process sees it
	unmap func() error
}

var cards sync.Map // string → *Card

// NewCard makes a Card. refuse returns why memory cannot be registered, nil if it can; a nil refuse refuses nothing.
func NewCard(cfg transport.Config, refuse func(transport.Memory) error) *Card {
	if cfg.Guard == nil {
		cfg.Guard = new(fifo.Guard)
	}
	return &Card{Transport: inproc.New(cfg), cfg: cfg, refuse: refuse, placed: listen.NewArrivals[*wire](cfg.Left)}
}

// Name is part of transport.Transport.
func (c *Card) Name() string { return "card" }

// Reach is nil for ranks of one process, whatever their Info.Host is.
func (c *Card) Reach(a, b transport.Info) error {
	if a.Process != b.Process {
		return errors.New("card: different processes")
	}
	return nil
}

// Listen is part of transport.Transport.
func (c *Card) Listen() ([]byte, error) {
	addr, err := c.Transport.Listen()
	if err == nil && c.address == "" {
		c.address = string(addr)
		cards.Store(c.address, c)
	}
	return addr, err
}

// Register is part of transport.Registrar.
func (c *Card) Register(m transport.Memory) (release func() error, err error) {
	if c.refuse != nil {
		if err := c.refuse(m); err != nil {
			return nil, fmt.Errorf("card: register: %w", err)
		}
	}
	r := registered{Region: m.Region, unmap: func() error { return nil }}
	switch {
	case m.IsHost():
		r.bytes = m.Bytes()
	case m.DMABuf == nil:
		return nil, errors.New("card: register: memory of a GPU without a dma-buf")
	default:
		if r.bytes, r.unmap, err = openBuffer(m); err != nil {
			return nil, fmt.Errorf("card: register: %w", err)
		}
	}
	c.mu.Lock()
	c.known = append(c.known, r)
	c.mu.Unlock()
	return func() error {
		c.mu.Lock()
		i := slices.IndexFunc(c.known, func(k registered) bool { return k.Region == m.Region })
		if i >= 0 {
			c.known = slices.Delete(c.known, i, i+1)
		}
		c.mu.Unlock()
		if i < 0 {
			return nil
		}
		return r.unmap()
	}, nil
}

// view is the bytes of slots, which lie in registered memory.
func (c *Card) view(slots mem.Region) ([]byte, error) {
	n := c.cfg.Limits.Slots * c.cfg.Limits.SlotBytes
	if slots.Len() != n {
		return nil, fmt.Errorf("%d bytes of slots: want %d", slots.Len(), n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.known {
		if k.Dev() == slots.Dev() && slots.Ptr() >= k.Ptr() && slots.Ptr()+uintptr(n) <= k.Ptr()+uintptr(k.Len()) {
			return k.bytes[slots.Ptr()-k.Ptr():][:n], nil
		}
	}
	return nil, errors.New("the slots are not in registered memory")
}

// DialPlaced is part of transport.Placer.
func (c *Card) DialPlaced(peer transport.Info, addr []byte, slots mem.Region) (transport.PlacedSendConn, error) {
	fail := func(err error) (transport.PlacedSendConn, error) {
		return nil, fmt.Errorf("card: dial rank %d: %w", peer.Rank, err)
	}
	from, err := c.view(slots)
	if err != nil {
		return fail(err)
	}
	v, ok := cards.Load(string(addr))
	if !ok {
		return fail(transport.ErrClosed)
	}
	to := v.(*Card)
	w := &wire{limits: c.cfg.Limits, from: from, sends: c.cfg.Guard, receives: to.cfg.Guard, reserved: -1}
	w.flights = make([]flight, w.limits.Slots)
	_, _ = rand.Read(w.dice[:])
	if !c.keep(w) || !to.keep(w) || !to.placed.Put(c.cfg.Self.Rank, w) {
		w.end()
		return fail(transport.ErrClosed)
	}
	return cardSend{w, slots}, nil
}

// AcceptPlaced is part of transport.Placer.
func (c *Card) AcceptPlaced(peer transport.Info, slots mem.Region) (transport.PlacedRecvConn, error) {
	to, err := c.view(slots)
	if err == nil {
		var w *wire
		if w, err = c.placed.Take(peer.Rank, c.cfg.Guard); err == nil {
			w.mu.Lock()
			w.to = to
			w.mu.Unlock()
			return cardRecv{w, slots}, nil
		}
	}
	return nil, fmt.Errorf("card: accept rank %d: %w", peer.Rank, err)
}

// keep remembers a wire until Close. It returns false after Close.
func (c *Card) keep(w *wire) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.address == "" {
		return false
	}
	c.wires = append(c.wires, w)
	return true
}

// Close is part of transport.Transport.
func (c *Card) Close() error {
	cards.CompareAndDelete(c.address, c)
	c.mu.Lock()
	c.address = ""
	wires, known := c.wires, c.known
	c.wires, c.known = nil, nil
	c.mu.Unlock()
	c.placed.Close()
	for _, w := range wires {
		w.end()
	}
	err := c.Transport.Close()
	for _, k := range known {
		err = errors.Join(err, k.unmap())
	}
	return err
}
