// Package plugin is the transport over NCCL's network plugins (libnccl-net.so): libraries in C
// that vendors of networks write for NCCL, with tables of functions of version 8 to 11. It is
// for package paths. The trap: a plugin is foreign code in this process, and nothing here notices
// when it writes to memory of others. A plugin that blocks where it must not, even for ever, costs a goroutine
// and the memory that it was given: the user of a connection never calls the plugin, but waits with the Guard for
// the one goroutine that does (actor.go).
//
// A connection is one-way: slots flow from the side that dialled. Each has a control stream,
// a socket over which the two ends prove that they know the key, exchange the plugin's
// handle, and say goodbye; plugins do none of that. A slot is one message of the plugin: a
// header and the payload. The receiver posts a receive for every free slot. A send completes
// only when such a receive is posted, which holds the sender back.
//
// The slots of a placed connection lie in memory that was registered with the transport, a GPU's
// too (register.go): payloads go from the sender's slots straight into the receiver's, on a
// second comm of the plugin, and headers on the first. The trap there: the plugin reads the
// slots of a closed connection until it has let go of them, so call release, or Close of the
// transport, before the memory is freed.
//
// Plugins make progress only in their function test, and wake nobody. While somebody waits for a slot, one goroutine
// of the communicator calls test for all waits and for the sends under way. After half a ms without progress the
// goroutine rests, and the proxy makes it look now and then (proxy.go).
package plugin

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/ends"
	"github.com/ringo-go/ringo/transport/internal/listen"
	"github.com/ringo-go/ringo/transport/internal/pace"
)

// protocol is the context of the handshake (see internal/auth). Its number changes with the
// format of the control stream and of messages.
const protocol = "ringo plugin 2"

// Options are what a transport needs besides its plugin.
type Options struct {
	// Listen opens the listener of the control streams, and returns the zone of link-local
	// peers. nil is a port on loopback. Transports of the same Kind share one listener.
	Listen func() (l net.Listener, zone string, err error)
	Kind   string
	// Rail is the number of the device that the first connection from each peer uses; further
	// connections use the next devices in turn. See transport.NetworkOptions.
	Rail int
}

// Transport is the plugin transport of one rank of one communicator.
type Transport struct {
	cfg     transport.Config
	opt     Options
	lib     *Library
	bad     error // what is wrong with the plugin, told by Listen
	log     *slog.Logger
	warn    *auth.Log // for events that strangers can cause
	arrived *listen.Arrivals[*recvConn]

	ends *ends.Set[end] // open connections

	mu       sync.Mutex
	addr     []byte // nil before Listen
	endpoint *listen.Endpoint
	devices  []*Device   // that can be used
	dialled  map[int]int // connections that each rank has made
	ctx      uintptr     // the plugin's context, since version 11
	opened   bool        // ctx is open
	regions  []*region   // registered memory

	data   actor                   // carries the data of all ends; see work
	halves atomic.Pointer[[]*half] // open ends
	open   atomic.Int32            // ends that the plugin has not closed
	held   atomic.Bool             // the plugin may still use registered memory
	busy   atomic.Int32            // ends whose sends are not done
	fresh  atomic.Bool             // data keeps polling for a while
	pace   pace.Waiter             // of data
	drowsy atomic.Bool             // data rests though more is to come: the proxy wakes it
	rouse  chan struct{}           // starts the proxy's looks
}

type end interface {
	Close() error
	lies(*region) bool
}

// New makes a transport. It costs nothing until Listen.
func New(cfg transport.Config, lib *Library, o Options) *Transport {
	t := &Transport{
		cfg: cfg, opt: o, lib: lib, log: cfg.Log,
		arrived: listen.NewArrivals[*recvConn](cfg.Left),
		ends:    ends.New[end](cfg.Linger),
		dialled: make(map[int]int),
		rouse:   make(chan struct{}, 1),
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if t.cfg.Guard == nil {
		t.cfg.Guard = new(fifo.Guard)
	}
	if t.opt.Listen == nil {
		t.opt.Kind = "loopback"
		t.opt.Listen = func() (net.Listener, string, error) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			return l, "", err
		}
	}
	t.halves.Store(new([]*half))
	t.data.work, t.pace = t.work, t.newPace()
	t.warn = auth.NewLog(t.log)
	return t
}

// Name is "plugin".
func (t *Transport) Name() string { return "plugin" }

// Reach is nil for all ranks.
func (t *Transport) Reach(a, b transport.Info) error { return nil }

// Listen starts the plugin for this communicator and opens the listener of control streams. The
// first time in a process it also has the plugin carry a message (see try).
func (t *Transport) Listen() (addr []byte, err error) {
	if addr, err = t.listen(); err == nil {
		err = t.try(trial{dev: -1}, addr, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("plugin: listen: %w", err)
	}
	return addr, nil
}

func (t *Transport) listen() (addr []byte, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch l := t.cfg.Limits; {
	case t.ends.Closed():
		return nil, fifo.ErrClosed
	case t.bad != nil:
		return nil, t.bad
	case t.addr != nil:
		return t.addr, nil
	case l.Slots < 2 || l.SlotBytes < 1 || l.SlotBytes > maxSlotBytes:
		return nil, fmt.Errorf("limits %+v: want at least 2 slots of 1 to %d bytes", l, maxSlotBytes)
	}
	if err := t.start(); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	defer close(ready)
	var p *listen.Endpoint
	p, err = listen.Enter("plugin "+t.opt.Kind, t.opt.Listen, nil, t.warn, func(c net.Conn) {
		<-ready
		t.receive(c, p)
	})
	if err != nil {
		return nil, err
	}
	t.endpoint = p
	t.addr = []byte(t.lib.Name + "\n" + p.Addr())
	return t.addr, nil
}

// start starts the plugin for this communicator. The caller holds mu.
func (t *Transport) start() (err error) {
	if t.devices, err = t.lib.usable(headerLen + t.cfg.Limits.SlotBytes); err != nil {
		return err
	}
	mac := hmac.New(sha256.New, t.cfg.Key)
	mac.Write([]byte("ringo plugin's number of a communicator"))
	ctx, cancel := listen.Patience(t.cfg.Guard, t.ends.Away(), nil)
	defer cancel()
	if t.ctx, err = t.lib.open(ctx, binary.LittleEndian.Uint64(mac.Sum(nil))); err != nil {
		return err
	}
	t.opened = true
	t.ends.Go(t.proxy)
	return nil
}

// device chooses the device for another connection from a rank and counts its comms there.
func (t *Transport) device(from, comms int) (*Device, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range t.devices {
		d := t.devices[(t.opt.Rail+t.dialled[from])%len(t.devices)]
		t.dialled[from]++
		if d.take(comms) {
			return d, nil
		}
	}
	return nil, t.lib.failed("listen", fmt.Errorf("all %d devices have as many connections as they take", len(t.devices)))
}

// take counts comms of the device, if it takes so many more.
func (d *Device) take(comms int) bool {
	if d.conns.Add(int32(comms)) > int32(d.MaxConns) && d.MaxConns > 0 {
		d.conns.Add(-int32(comms))
		return false
	}
	return true
}

// Accept waits until peer has dialled. The errors are those of the Guard and, after Close,
// fifo.ErrClosed.
func (t *Transport) Accept(peer transport.Info) (transport.RecvConn, error) {
	c, err := t.take(peer, false)
	if err != nil {
		return nil, fmt.Errorf("plugin: accept rank %d: %w", peer.Rank, err)
	}
	return c, nil
}

// take is the next connection from peer; the error is that only one end is placed.
func (t *Transport) take(peer transport.Info, placed bool) (*recvConn, error) {
	c, err := t.arrived.Take(peer.Rank, t.cfg.Guard)
	if err == nil && placed != (c.direct != nil) {
		err = c.refuse(odd(placed))
	}
	return c, err
}

// Close ends all connections. Slots that were published before still reach peers that go on: Close waits for these,
// and returns what is lost (transport.Config.Linger). The error is transport.ErrHeld where the plugin has not let go
// of registered memory.
func (t *Transport) Close() error {
	if !t.ends.Shut() {
		return nil
	}
	t.mu.Lock()
	endpoint := t.endpoint
	t.endpoint = nil
	t.mu.Unlock()
	if endpoint != nil {
		endpoint.Shut()
	}
	t.arrived.Close()
	t.ends.Close()
	if endpoint != nil {
		endpoint.Wait()
	}
	t.ends.Wait()
	var held, err error
	if t.held.Load() {
		held = t.lib.failed("", transport.ErrHeld)
	}
	switch n := t.open.Load(); {
	case !t.opened || t.lib.Version < 11:
	case n > 0:
		err = t.lib.failed("finalize", fmt.Errorf("not called: it has not closed %d connections", n))
	default:
		err = t.lib.known(fnFinalize, t.await(t.lib.close(t.ctx)))
	}
	return errors.Join(t.ends.Lost(), held, err)
}
