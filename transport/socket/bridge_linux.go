//go:build !ringo_portable

package socket

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/fifo"
)

// A bridge leads from a socket of this process to a connection of the program's own, which may be any net.Conn. So the
// data path needs only descriptors.
type bridge struct {
	guard *fifo.Guard
	late  time.Duration // how long it goes on for a peer that takes none of the last bytes
	near  *net.UnixConn // the other end is the stream's
	far   net.Conn
	over  chan struct{} // closed by end

	once sync.Once
}

// newBridge returns the stream's end, and the bridge, which ends after that end is closed and end is called. The
// transport's Close waits for it.
func newBridge(t *Transport, far net.Conn) (*net.UnixConn, *bridge, error) {
	ends, err := socketpair()
	if err != nil {
		far.Close()
		return nil, nil, err
	}
	b := &bridge{guard: t.cfg.Guard, late: t.ends.Linger(), near: ends[1], far: far, over: make(chan struct{})}
	if !t.ends.Go(b.run) {
		b.close()
		ends[0].Close()
		return nil, nil, fifo.ErrClosed
	}
	return ends[0], b, nil
}

func socketpair() (ends [2]*net.UnixConn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return ends, os.NewSyscallError("socketpair", err)
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "bridge")
		c, failed := net.FileConn(f)
		f.Close()
		if failed != nil {
			err = failed
			continue
		}
		ends[i] = c.(*net.UnixConn)
	}
	if err != nil {
		for _, c := range ends {
			if c != nil {
				c.Close()
			}
		}
	}
	return ends, err
}

func (b *bridge) close() {
	b.near.Close()
	b.far.Close()
}

// end tells the bridge that the stream is closed.
func (b *bridge) end() {
	if b != nil {
		b.once.Do(func() { close(b.over) })
	}
}

// run moves bytes until the stream is closed and all bytes that it has sent are written to the connection.
func (b *bridge) run() {
	defer b.close()
	sent, received := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.Copy(b.far, b.near); err != nil {
			_ = b.near.CloseRead() // the sender's writes fail, and it may still receive a goodbye
			return
		}
		if half, ok := b.far.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	go func() {
		defer close(received)
		_, _ = io.Copy(b.near, b.far)
		_ = b.near.CloseWrite()
	}()
	<-b.over
	if b.guard.Aborted() == nil {
		_ = b.far.SetWriteDeadline(time.Now().Add(b.late))
		<-sent
	}
	b.close()
	<-sent
	<-received
}
