package p2p

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/cuda"
)

const secretBytes = 16

// deskTime bounds a visit.
const deskTime = 10 * time.Second

// A desk serves a Desk.
type desk struct {
	Desk
	listener *net.UnixListener
	work     sync.WaitGroup

	mu     sync.Mutex
	guests map[*net.UnixConn]bool
	closed bool
}

// openDesk hands out files of allocations, each made when it is asked for.
func openDesk(handles []cuda.MemHandle, export func(cuda.MemHandle) (fd int, err error)) (*desk, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@ringo-gpu-" + rand.Text()})
	if err != nil {
		return nil, err
	}
	d := &desk{Desk: Desk{l.Addr().String(), make([]byte, secretBytes)}, listener: l, guests: map[*net.UnixConn]bool{}}
	rand.Read(d.Secret)
	d.work.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // no descriptors left
				time.Sleep(time.Millisecond)
				continue
			}
			if !d.enter(c) {
				c.Close()
				return
			}
			d.work.Go(func() {
				defer d.leave(c)
				d.serve(c, handles, export)
			})
		}
	})
	return d, nil
}

func (d *desk) enter(c *net.UnixConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.guests[c] = true
	}
	return !d.closed
}

func (d *desk) leave(c *net.UnixConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.guests, c)
	c.Close()
}

// serve sends a caller who knows the secret all files. Who hangs up knows why.
func (d *desk) serve(c *net.UnixConn, handles []cuda.MemHandle, export func(cuda.MemHandle) (int, error)) {
	c.SetDeadline(time.Now().Add(deskTime))
	said := make([]byte, secretBytes)
	if _, err := io.ReadFull(c, said); err != nil || subtle.ConstantTimeCompare(said, d.Secret) == 0 {
		return
	}
	for _, h := range handles {
		fd, err := export(h)
		if err != nil {
			return
		}
		_, _, err = c.WriteMsgUnix([]byte{0}, unix.UnixRights(fd), nil)
		closeFile(fd)
		if err != nil {
			return
		}
	}
}

// close ends visits that are under way.
func (d *desk) close() {
	d.listener.Close()
	d.mu.Lock()
	d.closed = true
	for c := range d.guests {
		c.Close()
	}
	d.mu.Unlock()
	d.work.Wait()
}

// fetch gets the files of a desk, one after the other; f does not keep them.
func fetch(desk *Desk, files int, f func(i, fd int) error) error {
	if desk == nil {
		return errors.New("the peer hands out no files")
	}
	conn, err := net.DialTimeout("unix", desk.Socket, deskTime)
	if err != nil {
		return fmt.Errorf("the processes are in different network namespaces, or the peer has gone: %w", err)
	}
	defer conn.Close()
	c := conn.(*net.UnixConn)
	c.SetDeadline(time.Now().Add(deskTime))
	if _, err := c.Write(desk.Secret); err != nil {
		return err
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

func closeFile(fd int) { unix.Close(fd) }
