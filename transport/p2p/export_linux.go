package p2p

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/auth"
	"github.com/ringo-go/ringo/internal/cuda"
)

const (
	protocol    = "ringo gpu memory 1" // the context of the handshake
	secretBytes = 32
	maxPending  = 64
	exportTime  = 10 * time.Second // for one caller to prove itself and get all files
)

// An exporter serves an Export.
type exporter struct {
	Export
	listener net.Listener
	pending  *auth.Pending
	work     sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool // of callers that have proved themselves
	closed bool
}

// newExporter hands out files of allocations, each made when it is asked for.
func newExporter(handles []cuda.MemHandle, export func(cuda.MemHandle) (fd int, err error)) (*exporter, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@ringo-gpu-" + rand.Text()})
	if err != nil {
		return nil, err
	}
	e := &exporter{
		Export:   Export{l.Addr().String(), make([]byte, secretBytes)},
		listener: l,
		pending:  auth.NewPending(maxPending, exportTime, nil),
		conns:    map[net.Conn]bool{},
	}
	rand.Read(e.Secret)
	e.work.Go(func() {
		e.pending.Serve(l, func(c net.Conn) { e.serve(c.(*net.UnixConn), handles, export) })
	})
	return e, nil
}

// serve sends all files to a caller that knows the secret. Errors end the connection
// and are not reported: the caller sees them too.
func (e *exporter) serve(c *net.UnixConn, handles []cuda.MemHandle, export func(cuda.MemHandle) (int, error)) {
	trusted := false
	err := auth.Answer(c, e.Secret, protocol, func([]byte) []byte {
		trusted = e.pending.Trust(c) && e.keep(c)
		return nil
	})
	if !trusted {
		c.Close()
		return
	}
	defer e.forget(c)
	c.SetDeadline(time.Now().Add(exportTime))
	for i := 0; i < len(handles) && err == nil; i++ {
		var fd int
		if fd, err = export(handles[i]); err == nil {
			_, _, err = c.WriteMsgUnix([]byte{0}, unix.UnixRights(fd), nil)
			closeFile(fd)
		}
	}
}

func (e *exporter) keep(c net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.conns[c] = true
	}
	return !e.closed
}

func (e *exporter) forget(c net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, c)
	c.Close()
}

// close ends the exporter and its connections.
func (e *exporter) close() {
	e.listener.Close()
	e.pending.Close()
	e.mu.Lock()
	e.closed = true
	for c := range e.conns {
		c.Close()
	}
	e.mu.Unlock()
	e.work.Wait()
}

// fetch gets the files of an Export, one after the other; f does not keep them.
func fetch(x *Export, files int, f func(i, fd int) error) error {
	if x == nil {
		return errors.New("the peer hands out no files")
	}
	conn, err := net.DialTimeout("unix", x.Socket, exportTime)
	if err != nil {
		return fmt.Errorf("the processes are in different network namespaces, or the peer has gone: %w", err)
	}
	defer conn.Close()
	c := conn.(*net.UnixConn)
	c.SetDeadline(time.Now().Add(exportTime))
	if _, err := auth.Call(c, x.Secret, protocol, nil); err != nil {
		return fmt.Errorf("handshake with the peer: %w", err)
	}
	for i := range files {
		fd, err := receive(c)
		if err != nil {
			return fmt.Errorf("file %d of %d: %w", i, files, err)
		}
		err = f(i, fd)
		closeFile(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// receive is the next file.
func receive(c *net.UnixConn) (fd int, err error) {
	word, control := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := c.ReadMsgUnix(word, control) // sets close-on-exec
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:m])
	if err != nil {
		return -1, err
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil && len(fds) == 1 {
			return fds[0], nil
		}
	}
	return -1, errors.New("no file came, perhaps because this process has too many open")
}
