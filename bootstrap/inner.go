package bootstrap

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// An inner is a listener for ranks in the hub's own process. They need neither a name of their host nor a route to it.
type inner struct {
	calls chan net.Conn
	shut  chan struct{}
	once  sync.Once
}

func newInner() *inner { return &inner{calls: make(chan net.Conn), shut: make(chan struct{})} }

func (l *inner) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c, nil
	case <-l.shut:
		return nil, net.ErrClosed
	}
}

func (l *inner) Close() error {
	l.once.Do(func() { close(l.shut) })
	return nil
}

func (l *inner) Addr() net.Addr { return innerAddr{} }

// dial connects to the listener. Where that is closed the error is that of a port where nobody listens.
func (l *inner) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.calls <- innerConn{there}:
		return innerConn{here}, nil
	case <-l.shut:
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
