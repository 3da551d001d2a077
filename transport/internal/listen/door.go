package listen

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/process"
	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/transport"
)

// A Door is a listener that the transports of a process share. A caller first names the
// Endpoint that he wants, and hears whether it is there; then the handshake begins.
type Door struct {
	kind     string
	listener net.Listener
	zone     string
	tls      *secure.Config
	log      *auth.Log
	pending  *auth.Pending
	work     sync.WaitGroup
	closed   atomic.Bool

	mu        sync.Mutex
	endpoints map[string]*Endpoint // guarded by mu; by ID
	absent    string               // guarded by mu; the last Endpoint that a caller has not found
}

// closing is a listener whose Accept returns net.ErrClosed after its end, whatever its own error is.
type closing struct {
	net.Listener
	closed *atomic.Bool
}

func (l closing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil && l.closed.Load() {
		err = net.ErrClosed
	}
	return c, err
}

// An Endpoint is where one transport can be reached behind a Door.
type Endpoint struct {
	door   *Door
	id     string
	handle func(net.Conn)
	work   sync.WaitGroup // calls of handle

	callers []net.Conn // who have not proved themselves; guarded by mu of door
	gone    bool       // guarded by mu of door
}

var doors = process.Shared[string, *Door]{End: (*Door).close} // by kind

// Enter makes an Endpoint behind the Door of a kind. open opens the Door unless it is open already.
// tls is the same for all of a kind, nil for none. handle gets each connection, with a deadline,
// and calls Trust when the caller has proved himself; otherwise the connection is closed when
// handle returns.
func Enter(kind string, open func() (l net.Listener, zone string, err error), tls *secure.Config, log *auth.Log,
	handle func(net.Conn)) (*Endpoint, error) {
	d, err := doors.Open(nil, kind, func() (*Door, error) {
		l, zone, err := open()
		if err != nil {
			return nil, err
		}
		d := &Door{kind: kind, listener: l, zone: zone, tls: tls, log: log, endpoints: map[string]*Endpoint{},
			pending: auth.NewPending(MaxPending, HandshakeTime, log)}
		d.work.Go(func() { d.pending.Serve(closing{l, &d.closed}, d.serve) })
		return d, nil
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &Endpoint{door: d, id: rand.Text(), handle: handle}
	d.endpoints[p.id] = p
	return p, nil
}

// close ends the listener, after the last Endpoint.
func (d *Door) close() error {
	d.closed.Store(true)
	err := d.listener.Close()
	d.pending.Close()
	return err
}

// Addr is the address of the Endpoint, for Dial: the Door's address and the Endpoint's ID.
func (p *Endpoint) Addr() string { return p.door.listener.Addr().String() + behind + p.id }

// ID tells the Endpoint from others behind its Door.
func (p *Endpoint) ID() string { return p.id }

// Zone is the zone that open returned.
func (p *Endpoint) Zone() string { return p.door.zone }

// Trust says that a caller has proved himself: his connection has no deadline any more and
// is the handler's. False means that it was closed in the meantime.
func (p *Endpoint) Trust(c net.Conn) bool {
	c = secure.Below(c)
	if !p.door.pending.Trust(c) {
		return false
	}
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	p.callers = slices.DeleteFunc(p.callers, func(x net.Conn) bool { return x == c })
	if p.gone {
		c.Close()
	}
	return !p.gone
}

// Shut ends the Endpoint: it closes connections whose callers have not proved themselves, and
// lets no more in. The last Endpoint of a Door closes the Door.
func (p *Endpoint) Shut() {
	d := p.door
	d.mu.Lock()
	gone := p.gone
	p.gone = true
	delete(d.endpoints, p.id)
	for _, c := range p.callers {
		c.Close()
	}
	d.mu.Unlock()
	if !gone {
		doors.Leave(nil, d.kind)
	}
}

// Wait waits after Shut until handle is called no more.
func (p *Endpoint) Wait() {
	p.work.Wait()
	if p.door.closed.Load() {
		p.door.work.Wait()
	}
}

// Closed reports whether Shut was called.
func (p *Endpoint) Closed() bool {
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	return p.gone
}

const (
	idBytes      = 26 // of rand.Text
	endpointGone = 0
	endpointHere = 1
)

// serve leads a caller to his Endpoint.
func (d *Door) serve(c net.Conn) {
	below, id := c, make([]byte, idBytes)
	var err error
	if d.tls != nil {
		c, err = d.tls.Server(below)
	}
	if err == nil {
		_, err = io.ReadFull(c, id)
	}
	if err != nil {
		d.log.Warn("listener: dropped a caller", "addr", d.listener.Addr(), "from", below.RemoteAddr(), "err", err)
		return
	}
	d.mu.Lock()
	p, again := d.endpoints[string(id)], d.absent == string(id)
	if p != nil {
		p.callers = append(p.callers, below)
		p.work.Add(1) // under the lock, so before Wait
	} else {
		d.absent = string(id)
	}
	d.mu.Unlock()
	if p == nil {
		if !again { // who calls a communicator that has been closed tries some times
			d.log.Info("listener: a caller asked for nobody who is here", "addr", d.listener.Addr(), "from", c.RemoteAddr())
		}
		c.Write([]byte{endpointGone})
		return
	}
	defer p.leave(below)
	if _, err := c.Write([]byte{endpointHere}); err == nil {
		p.handle(c)
	}
}

func (p *Endpoint) leave(c net.Conn) {
	p.door.mu.Lock()
	defer p.door.mu.Unlock()
	p.callers = slices.DeleteFunc(p.callers, func(x net.Conn) bool { return x == c })
	p.work.Done()
}

// behind separates the Door's address from the Endpoint's ID in the address for Dial.
const behind = "#"

// knock asks for the Endpoint id, and returns an error if it is not there.
func knock(c net.Conn, id string) error {
	if _, err := io.WriteString(c, id); err != nil {
		return err
	}
	var answer [1]byte
	if _, err := io.ReadFull(c, answer[:]); errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	} else if err != nil {
		return fmt.Errorf("%w (%w)", auth.ErrHungUp, err)
	}
	if answer[0] != endpointHere {
		return errNobody
	}
	return nil
}

var errNobody = fmt.Errorf("nobody listens there any more: %w", transport.ErrClosed)

// reach connects to an Endpoint, or to the plain listener of an address that has none.
func reach(ctx context.Context, to Target) (net.Conn, error) {
	door, id, ok := strings.Cut(to.Addr, behind)
	soon, cancel := context.WithTimeout(ctx, HandshakeTime)
	defer cancel()
	dial := to.Sockets.Dialer()
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: -1}).DialContext
	}
	below, err := dial(soon, to.Network, door)
	if errors.Is(err, errRefused) {
		return nil, fmt.Errorf("%w (%w)", errNobody, err)
	}
	if err != nil {
		return nil, err
	}
	below.SetDeadline(time.Now().Add(HandshakeTime))
	stop := context.AfterFunc(ctx, func() { below.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c := below
	if to.TLS != nil {
		if c, err = to.TLS.Client(below); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("%w (%w)", auth.ErrHungUp, err)
		}
	}
	if err == nil && ok {
		err = knock(c, id)
	}
	if err != nil {
		below.Close()
		return nil, err
	}
	return c, nil
}
