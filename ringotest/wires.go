package ringotest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/relay"
)

// wires are the sockets of one rank: a relay to each address that it dials.
type wires struct {
	sockets ringo.Sockets

	mu     sync.Mutex
	relays map[string]*wire        // by address
	states map[int]relay.Condition // by peer
	down   bool                    // no more relays are made
}

// A wire is a relay to a peer, or to the rendezvous.
type wire struct {
	relay.Relay
	peer int
	at   string
}

// rendezvous is the peer that is no rank.
const rendezvous = -1

// newWires has a rank listen. The address contains the rank, so a dialler knows which rank listens there.
func newWires(rank int) (*wires, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wires{relays: map[string]*wire{}, states: map[int]relay.Condition{}}
	w.sockets = ringo.Sockets{Listener: l, Address: fmt.Sprintf("rank-%d@%s", rank, l.Addr()), Dial: w.dial}
	return w, nil
}

func (w *wires) dial(ctx context.Context, network, address string) (net.Conn, error) {
	x, err := w.to(address)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, x.at)
}

// to is the relay to an address.
func (w *wires) to(address string) (*wire, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, net.ErrClosed
	}
	if x := w.relays[address]; x != nil {
		return x, nil
	}
	x := &wire{peer: rendezvous}
	target := address
	if who, at, ok := strings.Cut(address, "@"); ok {
		if _, err := fmt.Sscanf(who, "rank-%d", &x.peer); err != nil {
			return nil, err
		}
		target = at
	}
	var err error
	if x.at, err = x.Start(target); err != nil {
		return nil, err
	}
	x.Set(w.states[x.peer])
	w.relays[address] = x
	return x, nil
}

// each calls f for all relays to a peer.
func (w *wires) each(peer int, f func(x *wire)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.eachLocked(peer, f)
}

// eachLocked is each for a caller that holds mu.
func (w *wires) eachLocked(peer int, f func(x *wire)) {
	for _, x := range w.relays {
		if x.peer == peer {
			f(x)
		}
	}
}

// change changes how all relays to a peer, later ones too, treat connections.
func (w *wires) change(peer int, f func(c *relay.Condition)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.states[peer]
	f(&c)
	w.states[peer] = c
	w.eachLocked(peer, func(x *wire) { x.Set(c) })
}

// close ends all connections, without goodbye.
func (w *wires) close() {
	w.mu.Lock()
	w.down = true
	relays := w.relays
	w.relays = nil
	w.mu.Unlock()
	for _, x := range relays {
		x.Close()
	}
	w.sockets.Listener.Close() // the communicator has closed it already, unless it could not be opened
}
