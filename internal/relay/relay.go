// Package relay makes networks that are worse than real ones, for tests. A Relay is a TCP port that passes bytes on to
// another port late, slowly, in pieces, changed, or not at all. The trap: a Relay that is held keeps connections open
// and their hosts reachable, so keep-alive finds nothing.
package relay

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Relay is a TCP port that passes callers' bytes on to another port, and the answers back, less kindly than a
// network does. Its fields are set before Start; Set, Cut and Corrupt may be called at any time.
type Relay struct {
	Piece int           // bytes are passed on in pieces of random lengths up to this one; 0: as they come
	Delay time.Duration // one piece in 16 is late by a random time up to this one
	First Fault         // of the first connection alone

	listener net.Listener
	to       string
	calls    atomic.Int64
	work     sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
	closed   bool
	over     chan struct{}

	condition Condition     // guarded by mu
	changed   chan struct{} // guarded by mu; closed by Set
	corrupt   atomic.Bool   // a byte is to be changed
}

// A Condition is how a Relay treats all its connections, in both directions.
type Condition struct {
	Held  bool          // nothing is passed on until Set changes this
	Lost  bool          // bytes are thrown away, without an error
	Delay time.Duration // each piece is late by so much; pieces are of up to 64 KiB
	Rate  int           // bytes a second of each connection and direction, 0 for no limit
}

// Set changes the Condition.
func (r *Relay) Set(c Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.condition = c
	close(r.changed)
	r.changed = make(chan struct{})
}

// Cut ends all connections that there are, for both ends.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

// Corrupt changes the next byte that a caller sends.
func (r *Relay) Corrupt() { r.corrupt.Store(true) }

// A Fault is what happens to the bytes of a connection from number At on, in one direction.
type Fault struct {
	Kind Kind
	Back bool // in the bytes to the caller, instead of those from the caller
	At   int
}

// A Kind of Fault.
type Kind int

const (
	None    Kind = iota
	Cut          // the connection ends for both
	Half         // later bytes are thrown away, without an error
	Corrupt      // one byte is changed
)

const lateOnes = 16

// perSecond is the number of pieces in which the bytes of a second are passed on under a Rate.
const perSecond = 100

// hinder waits as the Condition says. It returns how much of b may be passed on now, and whether it is lost.
func (r *Relay) hinder(b []byte) (piece []byte, lost bool) {
	for {
		r.mu.Lock()
		c, changed := r.condition, r.changed
		r.mu.Unlock()
		wait := c.Delay
		if piece = b; c.Rate > 0 {
			piece = b[:min(len(b), max(c.Rate/perSecond, 1))]
			wait += time.Second * time.Duration(len(piece)) / time.Duration(c.Rate)
		}
		var late <-chan time.Time
		switch {
		case c.Held:
		case wait == 0:
			return piece, c.Lost
		default:
			late = time.After(wait)
		}
		select {
		case <-late:
			return piece, c.Lost
		case <-changed:
		case <-r.over:
			return piece, false
		}
	}
}

// Start opens the port, which Close closes, and returns its address. to is the address of the other port.
func (r *Relay) Start(to string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	r.listener, r.to, r.over, r.changed = l, to, make(chan struct{}), make(chan struct{})
	r.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.work.Go(func() { r.Serve(c) })
		}
	})
	return l.Addr().String(), nil
}

// Close ends all connections.
func (r *Relay) Close() {
	r.listener.Close()
	r.mu.Lock()
	if !r.closed {
		close(r.over)
	}
	r.closed = true
	for _, c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
}

// keep remembers a connection until Close. After Close it closes the connection and returns false.
func (r *Relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		c.Close()
		return false
	}
	r.conns = append(r.conns, c)
	return true
}

// Serve passes the bytes of a connection on, which it closes at the end; after Close, at once.
func (r *Relay) Serve(caller net.Conn) {
	if !r.keep(caller) {
		return
	}
	defer caller.Close()
	there, err := net.Dial("tcp", r.to)
	if err != nil {
		r.listener.Close() // callers are refused, as they are there
		return
	}
	if !r.keep(there) {
		return
	}
	defer there.Close()
	var fault Fault
	if r.calls.Add(1) == 1 {
		fault = r.First
	}
	forth, back := fault, fault
	if fault.Back {
		forth.Kind = None
	} else {
		back.Kind = None
	}
	var both sync.WaitGroup
	sent, answered := make(chan struct{}), make(chan struct{})
	both.Go(func() { r.pass(there, caller, forth, sent, answered, true) })
	both.Go(func() { r.pass(caller, there, back, answered, sent, false) })
	both.Wait()
}

// pass copies bytes until they end, and closes done then. other is the done of the other
// direction.
func (r *Relay) pass(to, from net.Conn, fault Fault, done chan<- struct{}, other <-chan struct{}, forth bool) {
	once := sync.OnceFunc(func() { close(done) })
	defer once()
	buf := make([]byte, 64<<10)
	for at := 0; ; {
		n, err := from.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			piece := b
			if r.Piece > 0 {
				piece = b[:min(len(b), 1+rand.IntN(r.Piece))]
			}
			piece, lost := r.hinder(piece)
			if forth && r.corrupt.CompareAndSwap(true, false) {
				piece[0] ^= 0x10
			}
			if r.Delay > 0 && rand.IntN(lateOnes) == 0 {
				time.Sleep(rand.N(r.Delay))
			}
			hit := !lost && fault.Kind != None && at+len(piece) > fault.At
			if hit && fault.Kind == Corrupt {
				piece[fault.At-at] ^= 0x10
				fault.Kind = None
			} else if hit {
				piece = piece[:fault.At-at]
			}
			if lost {
				at, b = at+len(piece), b[len(piece):]
				continue
			}
			if _, failed := to.Write(piece); failed != nil {
				// Nobody reads at to any more. The sender is reset, but not before the other
				// direction has brought it the goodbye that may be on its way.
				once()
				<-other
				from.Close()
				return
			}
			if hit && fault.Kind == Cut {
				from.Close()
				to.Close()
				return
			}
			if hit && fault.Kind == Half {
				_, _ = io.Copy(io.Discard, from)
				return
			}
			at, b = at+len(piece), b[len(piece):]
		}
		if err != nil {
			_ = to.(*net.TCPConn).CloseWrite() // fails if it is closed already
			return
		}
	}
}
