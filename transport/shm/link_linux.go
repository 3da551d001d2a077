package shm

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/ringo-go/ringo/fifo"
)

// link is an end of a connection: the end of a queue, and a socket that tells
// when the peer dies.
type link struct {
	end interface {
		Close() error
		Fail(error)
		Drain()
	}
	socket *net.UnixConn
	memory []byte
	once   sync.Once
}

// goodbye is what a link says before it closes its socket.
var goodbye = []byte{1}

// Close ends the queue, then says goodbye. The memory stays until Close of the
// Transport.
func (l *link) Close() error {
	l.once.Do(func() {
		_ = l.end.Close()
		_, _ = l.socket.Write(goodbye) // a peer that is gone does not miss it
		_ = l.socket.Close()
	})
	return nil
}

// watch waits for the peer's goodbye, or for its death.
func (l *link) watch() {
	var b [1]byte
	if _, err := io.ReadFull(l.socket, b[:]); err != nil {
		l.end.Fail(fmt.Errorf("the peer has gone: %w", err))
	}
}

type sendConn struct {
	*fifo.Producer
	link *link
}

func (c *sendConn) Close() error { return c.link.Close() }

type recvConn struct {
	*fifo.Consumer
	link *link
}

func (c *recvConn) Close() error { return c.link.Close() }
