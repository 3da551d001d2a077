package shm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
)

const (
	handshakeTime = 10 * time.Second
	guardTime     = 20 * time.Millisecond // a dialler looks at its Guard this often
	maxHandshakes = 256                   // at a time
)

func isAgain(err error) bool { return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) }

// introduce is the dialler's half of the handshake.
func (t *Transport) introduce(socket *net.UnixConn, peer transport.Info, f *os.File) error {
	challenge := make([]byte, challengeSize)
	if err := t.read(socket, challenge); err != nil {
		return err
	}
	if string(challenge[:len(magic)]) != magic {
		return errors.New("the listener speaks another protocol or version: use one release everywhere")
	}
	h := hello{
		From: uint32(t.cfg.Self.Rank), To: uint32(peer.Rank),
		Slots: uint32(t.cfg.Limits.Slots), SlotBytes: uint64(t.cfg.Limits.SlotBytes),
	}
	rand.Read(h.Nonce[:])
	said := h.marshal(t.cfg.Key, challenge)
	if n, _, err := socket.WriteMsgUnix(said, unix.UnixRights(int(f.Fd())), nil); err != nil || n != len(said) {
		return fmt.Errorf("hello: %d of %d bytes sent: %w", n, len(said), err)
	}
	head := make([]byte, verdictHead)
	if err := t.read(socket, head); err != nil {
		return fmt.Errorf("no answer, perhaps because the keys differ: %w", err)
	}
	n, err := textSize(head)
	if err != nil {
		return err
	}
	text := make([]byte, n)
	if err := t.read(socket, text); err != nil {
		return err
	}
	return parseVerdict(head, text, t.cfg.Key, said)
}

// read fills b, unless the Guard or the time for the handshake ends.
func (t *Transport) read(socket *net.UnixConn, b []byte) error {
	defer socket.SetReadDeadline(time.Time{})
	for end := time.Now().Add(handshakeTime); len(b) > 0; {
		_ = socket.SetReadDeadline(time.Now().Add(guardTime))
		n, err := socket.Read(b)
		b = b[n:]
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(end) {
			err = t.cfg.Guard.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// serve answers diallers until the listener is closed.
func (t *Transport) serve(listener *net.UnixListener) {
	places := make(chan struct{}, maxHandshakes)
	for {
		socket, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors left, or the caller hung up
			t.cfg.Log.Warn("shm: accept", "rank", t.cfg.Self.Rank, "err", err)
			time.Sleep(guardTime)
			continue
		}
		places <- struct{}{}
		t.work.Go(func() {
			defer func() { <-places }()
			t.receive(socket)
		})
	}
}

// receive carries a handshake out and keeps the connection, or drops a stranger
// with one line in the log.
func (t *Transport) receive(socket *net.UnixConn) {
	if !t.track(socket) {
		socket.Close()
		return
	}
	c, err := t.believe(socket)
	t.forget(socket)
	if err == nil && !t.keep(c.link) {
		_ = unix.Munmap(c.link.memory)
		err = fifo.ErrClosed
	}
	if err != nil {
		socket.Close()
		t.cfg.Log.Warn("shm: dropped a connection", "rank", t.cfg.Self.Rank, "err", err)
		return
	}
	t.arrived.Put(c.link.peer, c)
}

func (t *Transport) track(socket *net.UnixConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.sockets[socket] = struct{}{}
	}
	return !t.closed
}

func (t *Transport) forget(socket *net.UnixConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sockets, socket)
}

// believe is the listener's half of the handshake.
func (t *Transport) believe(socket *net.UnixConn) (c *recvConn, err error) {
	_ = socket.SetDeadline(time.Now().Add(handshakeTime))
	defer socket.SetDeadline(time.Time{})
	challenge := append([]byte(magic), make([]byte, nonceSize)...)
	rand.Read(challenge[len(magic):])
	if _, err := socket.Write(challenge); err != nil {
		return c, err
	}
	said, fd, err := readHello(socket)
	if fd >= 0 {
		defer unix.Close(fd)
	}
	if err != nil {
		return c, err
	}
	h, err := parseHello(said, t.cfg.Key, challenge)
	if err != nil {
		return c, err
	}
	if err = h.suits(t.cfg); err == nil {
		c, err = t.adopt(h, fd, socket)
	}
	if _, werr := socket.Write(verdict(t.cfg.Key, said, err)); err == nil && werr != nil {
		_ = unix.Munmap(c.link.memory)
		err = werr
	}
	return c, err
}

// adopt maps the memory of a trusted dialler.
func (t *Transport) adopt(h hello, fd int, socket *net.UnixConn) (c *recvConn, err error) {
	if fd < 0 {
		return c, errors.New("the hello came without shared memory")
	}
	if err := trust(fd, t.size, t.options.Dir); err != nil {
		return c, err
	}
	memory, err := share(fd, t.size)
	if err != nil {
		return c, err
	}
	consumer, err := fifo.NewConsumer(memory, geometry(t.cfg.Limits), t.waiting())
	if err != nil {
		_ = unix.Munmap(memory)
		return c, err
	}
	return &recvConn{consumer, &link{end: consumer, socket: socket, memory: memory, peer: int(h.From)}}, nil
}

// readHello reads a hello and the descriptor that comes with it, -1 if none.
// The caller closes the descriptor, also after an error.
func readHello(socket *net.UnixConn) (b []byte, fd int, err error) {
	fd = -1
	b = make([]byte, helloSize)
	control := make([]byte, unix.CmsgSpace(4*4))
	n, oobn, _, _, err := socket.ReadMsgUnix(b, control) // sets close-on-exec
	if err != nil {
		return nil, fd, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:oobn])
	if err != nil {
		return nil, fd, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue // credentials or the like
		}
		for _, f := range fds {
			if fd < 0 {
				fd = f
			} else {
				unix.Close(f)
			}
		}
	}
	_, err = io.ReadFull(socket, b[n:])
	return b, fd, err
}
