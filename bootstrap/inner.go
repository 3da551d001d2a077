package bootstrap

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// A handed listener gets its callers from others of this process.
type handed struct {
	calls chan call
	over  chan struct{} // closed by end
	end   func()
}

// A call is a caller, or why there is none.
type call struct {
	conn net.Conn
	err  error
}

func newHanded() handed {
	over := make(chan struct{})
	return handed{calls: make(chan call), over: over, end: sync.OnceFunc(func() { close(over) })}
}

// Accept waits for a caller.
func (l *handed) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c.conn, c.err
	case <-l.over:
		return nil, net.ErrClosed
	}
}

// An inner is a listener for ranks in the hub's own process. They need neither a name of their host nor a route to it.
type inner struct{ handed }

func (l *inner) Close() error {
	l.end()
	return nil
}

func (l *inner) Addr() net.Addr { return innerAddr{} }

// dial connects to the listener. Where that is closed the error is that of a port where nobody listens.
func (l *inner) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.calls <- call{conn: innerConn{there}}:
		return innerConn{here}, nil
	case <-l.over:
		return nil, fmt.Errorf("the rendezvous in this process takes no ranks now: %w", syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// An innerConn is an end of a pipe. A Write returns when its bytes have been read.
type innerConn struct{ net.Conn }

func (c innerConn) CloseWrite() error    { return c.Close() }
func (c innerConn) LocalAddr() net.Addr  { return innerAddr{} }
func (c innerConn) RemoteAddr() net.Addr { return innerAddr{} }

type innerAddr struct{}

func (innerAddr) Network() string { return "pipe" }
func (innerAddr) String() string  { return "the process that serves" }
