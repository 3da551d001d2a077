package paths

import (
	"maps"
	"slices"
	"sync"

	"github.com/ringo-go/ringo/mem"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/transport"
)

// Links are the connections of one rank, made on first use over the transport
// that the ranks have agreed on for the pair.
type Links struct {
	paths []path // by peer
	fault func(to int, c transport.SendConn) transport.SendConn

	mu      sync.Mutex
	awaited map[int]int // by peer: calls that wait until the peer dials
	sends   map[sched.Rank]func() (transport.SendConn, error)
	recvs   map[sched.Rank]func() (transport.RecvConn, error)
}

// A path is how a pair of ranks is connected.
type path struct {
	peer  transport.Info
	addr  []byte
	via   transport.Transport
	width int // how many times Limits.SlotBytes a slot has
}

func newLinks(paths []path) *Links {
	return &Links{
		paths:   paths,
		awaited: map[int]int{},
		sends:   map[sched.Rank]func() (transport.SendConn, error){},
		recvs:   map[sched.Rank]func() (transport.RecvConn, error){},
	}
}

// Send is part of engine.Links. An error comes again with every later call, as one of Recv does.
func (l *Links) Send(to sched.Rank) (transport.SendConn, error) {
	return once(&l.mu, l.sends, to, func() (transport.SendConn, error) { return l.Dial(to) })
}

// Recv is part of engine.Links.
func (l *Links) Recv(from sched.Rank) (transport.RecvConn, error) {
	return once(&l.mu, l.recvs, from, func() (transport.RecvConn, error) { return l.Accept(from) })
}

// Dial makes another sending end of the connections to a peer.
func (l *Links) Dial(to sched.Rank) (transport.SendConn, error) {
	p := l.paths[to]
	c, err := p.via.Dial(p.peer, p.addr)
	if err == nil && l.fault != nil {
		c = l.fault(int(to), c)
	}
	return c, err
}

// Spoil passes every sending end that is made from now on through f. It is for tests of
// connections that fail.
func (l *Links) Spoil(f func(to int, c transport.SendConn) transport.SendConn) { l.fault = f }

// Accept makes another receiving end of the connections from a peer.
func (l *Links) Accept(from sched.Rank) (transport.RecvConn, error) {
	l.await(int(from), 1)
	defer l.await(int(from), -1)
	return l.paths[from].via.Accept(l.paths[from].peer)
}

func (l *Links) await(peer, more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.awaited[peer] += more; l.awaited[peer] == 0 {
		delete(l.awaited, peer)
	}
}

// Awaited are the peers whose dial somebody waits for.
func (l *Links) Awaited() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.awaited))
}

// DialPlaced and AcceptPlaced are Dial and Accept for slots that are placed, where the transport to the
// peer is a transport.Placer.
func (l *Links) DialPlaced(to sched.Rank, slots mem.Region) (transport.PlacedSendConn, error) {
	p := l.paths[to]
	return p.via.(transport.Placer).DialPlaced(p.peer, p.addr, slots)
}

func (l *Links) AcceptPlaced(from sched.Rank, slots mem.Region) (transport.PlacedRecvConn, error) {
	l.await(int(from), 1)
	defer l.await(int(from), -1)
	p := l.paths[from]
	return p.via.(transport.Placer).AcceptPlaced(p.peer, slots)
}

// Width is part of engine.Wide.
func (l *Links) Width(peer sched.Rank) int { return l.paths[peer].width }

// once makes the connection of a peer the first time, and keeps it or the error. Callers wait for a connection of the
// same peer that is being made, not for those of other peers.
func once[C any](mu *sync.Mutex, conns map[sched.Rank]func() (C, error), peer sched.Rank, dial func() (C, error)) (C,
	error) {
	mu.Lock()
	get, ok := conns[peer]
	if !ok {
		get = sync.OnceValues(dial)
		conns[peer] = get
	}
	mu.Unlock()
	return get()
}

// Via names the transport to a peer, for errors.
func (l *Links) Via(peer int) string {
	if peer < 0 || peer >= len(l.paths) {
		return ""
	}
	return l.paths[peer].via.Name()
}
