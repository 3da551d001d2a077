package transporttest

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Relay is a TCP port that passes on to another one what callers send and what they are
// answered, less kindly than a network does. Its fields are set before Start.
type Relay struct {
	Piece int           // bytes are passed on in pieces of random lengths up to this one; 0: as they come
	Delay time.Duration // one piece in 16 is late by a random time up to this one
	First Fault         // is done to the first connection alone

	listener net.Listener
	to       string
	calls    atomic.Int64
	work     sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
	closed   bool
}

// A Fault is what happens to the bytes of a connection from number At on, in one direction.
type Fault struct {
	Kind Kind
	Back bool // in the bytes that the caller gets, instead of those that he sends
	At   int
}

// A Kind of Fault.
type Kind int

const (
	None    Kind = iota
	Cut          // the connection ends for both
	Half         // the bytes end, and nobody is told
	Corrupt      // one byte is another one
)

const lateOnes = 16

// Start opens the port, which is then closed by Close, and returns its address.
func (r *Relay) Start(to string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	r.listener, r.to = l, to
	r.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.work.Go(func() { r.serve(c) })
		}
	})
	return l.Addr().String(), nil
}

// Close ends all connections.
func (r *Relay) Close() {
	r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for _, c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
}

// keep remembers a connection until Close. It returns false after that.
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

func (r *Relay) serve(caller net.Conn) {
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
	both.Go(func() { r.pass(there, caller, forth, sent, answered) })
	both.Go(func() { r.pass(caller, there, back, answered, sent) })
	both.Wait()
}

// pass copies bytes until they end, and closes done then. other is the done of the other
// direction.
func (r *Relay) pass(to, from net.Conn, fault Fault, done chan<- struct{}, other <-chan struct{}) {
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
			if r.Delay > 0 && rand.IntN(lateOnes) == 0 {
				time.Sleep(rand.N(r.Delay))
			}
			hit := fault.Kind != None && at+len(piece) > fault.At
			if hit && fault.Kind == Corrupt {
				piece[fault.At-at] ^= 0x10
				fault.Kind = None
			} else if hit {
				piece = piece[:fault.At-at]
			}
			if _, failed := to.Write(piece); failed != nil {
				// Nobody reads there any more. Who sends is reset, but not before he has
				// got a goodbye that is on its way to him.
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
