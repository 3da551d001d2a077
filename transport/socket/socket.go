// Package socket is the transport over TCP and Unix stream sockets. It is for package
// paths. The trap: without Options.TLS data travel in clear, and only the handshake is
// authenticated.
//
// A connection is one-way: slots flow from the side that dialled, and only
// credits flow back. It is made of one or more streams; slot k travels on
// stream k mod Streams. Both ends prove that they know the key of the
// communicator before either believes the other (internal/auth); strangers are
// dropped.
//
// On Linux the data path runs in the caller's goroutine with non-blocking system
// calls, and large slots are not copied into the kernel: their pages are lent to it
// (lend_linux.go), which on one host leaves a single copy, the receiver's; under TLS
// the caller's goroutine encrypts (seal_linux.go). On other systems the data path uses
// package net and a goroutine that writes.
package socket

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/ends"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// Options say which sockets to use. The zero value is automatic.
type Options struct {
	// Network is "tcp", "unix", or "" for Unix sockets between ranks of one
	// host and TCP between hosts.
	Network string
	// IfName names the interface of TCP connections: a comma list of prefixes;
	// a leading ^ excludes them, a leading = wants exact names, ^= both. For each
	// word the first interface that fits is taken, and streams are spread over all of
	// them; none is an error. "" and ^ are automatic: one interface (see choose).
	IfName string
	// Family is 4 or 6 for the IP version, 0 for either.
	Family int
	// Streams is the number of sockets a connection is striped over, 0 for one to each
	// interface of the peer.
	// More than one helps where one TCP stream cannot fill the link (long or
	// lossy paths, one receive queue of a NIC); on one host it costs.
	Streams int
	// Local says that all peers are on this host: no port is opened that others
	// can reach. Listen opens a Unix socket, or a port on loopback if Network is
	// "tcp" or there are no Unix sockets. An interface that IfName names is taken
	// all the same.
	Local bool
	// Rail is the number of the peer's interface to which the first stream goes, modulo their number.
	Rail int
	// TLS encrypts TCP connections; nil is no encryption. Unix sockets do not leave the host and
	// are never encrypted.
	TLS *secure.Config
	// Sockets are the program's own listener and dialler, nil for none. Unix sockets are not used with them.
	Sockets *transport.Sockets
}

// maxStreams keeps a wrong number from using up all descriptors.
const maxStreams = 64

func (o *Options) check() error {
	switch {
	case o.Network != "" && o.Network != "tcp" && o.Network != "unix":
		return fmt.Errorf("network %q: want tcp, unix or nothing", o.Network)
	case o.Family != 0 && o.Family != 4 && o.Family != 6:
		return fmt.Errorf("address family %d: want 4, 6 or 0", o.Family)
	case o.Network == "unix" && o.Sockets != nil:
		return errors.New("Config.Sockets are not for unix sockets: leave SocketNetwork (RINGO_SOCKET_NETWORK) empty")
	case o.Streams < 0 || o.Streams > maxStreams:
		return fmt.Errorf("%d streams: want 1 to %d, or 0", o.Streams, maxStreams)
	}
	return nil
}

// Transport is the socket transport of one rank of one communicator.
type Transport struct {
	cfg     transport.Config
	opt     Options
	bad     error // of the options, told by Listen and Dial
	log     *slog.Logger
	warn    *auth.Log // for events that strangers can cause
	partly  puzzle
	ifaces  func() ([]iface, error)
	arrived *listen.Arrivals[*recvConn]

	ends *ends.Set[end] // open connections

	mu        sync.Mutex
	addr      []byte              // nil before Listen
	zone      string              // of the interface that listens, scope of link-local peers
	endpoints []*listen.Endpoint  // where Listen opened
	lame      map[netip.Addr]bool // addresses of peers that were not reached where another address was
}

type end interface{ Close() error }

// New makes a transport. It costs nothing until Listen.
func New(cfg transport.Config, o Options) *Transport {
	t := &Transport{
		cfg: cfg, opt: o, log: cfg.Log,
		arrived: listen.NewArrivals[*recvConn](cfg.Left),
		ends:    ends.New[end](cfg.Linger),
		ifaces:  interfaces,
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.cfg.Guard == nil {
		t.cfg.Guard = new(fifo.Guard)
	}
	t.bad = t.opt.check()
	if l := cfg.Limits; t.bad == nil && (l.Slots < 2 || l.SlotBytes < 1 || l.SlotBytes > maxSlotBytes) {
		t.bad = fmt.Errorf("limits %+v: want at least 2 slots of 1 to %d bytes", l, maxSlotBytes)
	}
	t.warn = auth.NewLog(t.log)
	return t
}

// Name is "socket".
func (t *Transport) Name() string { return "socket" }

// Reach is nil for all ranks, except that Unix sockets end at the host.
func (t *Transport) Reach(a, b transport.Info) error {
	if t.opt.Network == "unix" && a.Host != b.Host {
		return fmt.Errorf("socket: ranks %d and %d are on different hosts, which Unix sockets do not connect (use tcp)",
			a.Rank, b.Rank)
	}
	return nil
}

// Listen opens the listeners that Options ask for, TCP on the chosen interface, and
// returns their addresses (see address). It costs a few system calls.
func (t *Transport) Listen() (addr []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("socket: listen: %w", err)
		}
	}()
	if t.bad != nil {
		return nil, t.bad
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ends.Closed():
		return nil, fifo.ErrClosed
	case t.addr != nil:
		return t.addr, nil
	}
	where, err := t.listen()
	if err != nil {
		for _, p := range t.endpoints {
			p.Shut()
			p.Wait()
		}
		t.endpoints = nil
		return nil, err
	}
	t.addr = where.text()
	return t.addr, nil
}

// listen opens the listeners. The caller holds mu.
func (t *Transport) listen() (where address, err error) {
	if s := t.opt.Sockets; s != nil && s.Listener != nil {
		return where, t.listenGiven(&where)
	}
	if t.opt.Network != "tcp" && t.opt.Sockets == nil {
		p, err := t.enter("unix", listenUnix, nil)
		switch {
		case err == nil:
			where.Unix = p.Addr()
		case t.opt.Network == "unix":
			return where, err
		default:
			t.log.Info("socket: no Unix socket, ranks of this host will use TCP", "reason", err)
		}
	}
	if t.opt.Network != "unix" && !(t.opt.Local && where.Unix != "") {
		return where, t.listenTCP(&where)
	}
	return where, nil
}

// listenGiven listens on the program's listener. The caller holds mu.
func (t *Transport) listenGiven(where *address) error {
	s := t.opt.Sockets
	addr, err := s.Reached()
	if err != nil {
		return err
	}
	open := func() (net.Listener, string, error) { return s.Listener, "", nil }
	endpoint, err := t.enter(fmt.Sprintf("given %p %p", s, t.opt.TLS), open, t.opt.TLS)
	if err == nil {
		where.Given = addr + behind(endpoint.ID())
	}
	return err
}

// listenTCP opens a port on each interface. The caller holds mu.
func (t *Transport) listenTCP(where *address) error {
	if t.opt.Local && t.opt.IfName == "" {
		return t.port(where, fmt.Sprint("loopback ", t.opt.Family),
			func() (net.Listener, string, error) { return listenLoopback(t.opt.Family) })
	}
	ifs, err := t.ifaces()
	if err != nil {
		return err
	}
	all, err := chooseAll(ifs, t.opt)
	if err != nil {
		return err
	}
	for _, p := range all {
		if err := t.port(where, p.Addr.String(), p.listen); err != nil {
			return err
		}
	}
	return nil
}

// port opens a port and adds it to where.
func (t *Transport) port(where *address, name string, open func() (net.Listener, string, error)) error {
	endpoint, err := t.enter(fmt.Sprintf("tcp %s %p", name, t.opt.TLS), open, t.opt.TLS)
	if err != nil {
		return err
	}
	p, err := parsePort(endpoint.Addr())
	where.TCP = append(where.TCP, p)
	if len(where.TCP) == 1 {
		t.zone = endpoint.Zone()
	}
	return err
}

// enter makes an endpoint behind a door that the transports of the process share. The caller
// holds mu.
func (t *Transport) enter(kind string, open func() (net.Listener, string, error), tls *secure.Config) (*listen.Endpoint,
	error) {
	var p *listen.Endpoint
	ready := make(chan struct{})
	defer close(ready)
	p, err := listen.Enter("socket "+kind, open, tls, t.warn, func(c net.Conn) {
		<-ready
		t.receive(c, p)
	})
	if err == nil {
		t.endpoints = append(t.endpoints, p)
	}
	return p, err
}

// Accept waits until peer has dialled. The errors are those of the Guard and,
// after Close, fifo.ErrClosed.
func (t *Transport) Accept(peer transport.Info) (transport.RecvConn, error) {
	c, err := t.arrived.Take(peer.Rank, t.cfg.Guard)
	if err != nil {
		return nil, fmt.Errorf("socket: accept rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

// Close ends all connections. Slots that were published before still reach peers that have
// not closed: Close waits for these, and returns what is lost (transport.Config.Linger).
func (t *Transport) Close() error {
	if !t.ends.Shut() {
		return nil
	}
	t.mu.Lock()
	endpoints := t.endpoints
	t.endpoints = nil
	t.mu.Unlock()
	for _, p := range endpoints {
		p.Shut()
	}
	t.partly.close()
	t.arrived.Close()
	t.ends.Close()
	for _, p := range endpoints {
		p.Wait()
	}
	t.ends.Wait()
	return t.ends.Lost()
}
