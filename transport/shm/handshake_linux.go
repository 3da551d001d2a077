package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// protocol is the context of the handshake (see internal/auth). When both sides
// have proved themselves, the dialler sends one byte and with it the descriptor of
// the memory. The listener answers with the length (2 bytes, big-endian) and the
// text of its refusal; no text is a yes.
const protocol = "ringo shm 2"

// connect dials a listener, does the handshake and passes the memory f to it.
func (t *Transport) connect(peer transport.Info, addr string, f *os.File) (*net.UnixConn, error) {
	ctx, cancel := listen.Patience(t.cfg.Guard, t.away, nil)
	defer cancel()
	r := &listen.Request{From: t.cfg.Self.Rank, To: peer.Rank, Limits: t.cfg.Limits}
	var c net.Conn
	err := listen.Retry(ctx, func() (err error) {
		c, err = listen.Dial(ctx, listen.Target{Network: "unix", Addr: addr}, t.cfg.Key, protocol, r, func(c net.Conn) error {
			return pass(c.(*net.UnixConn), f)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// pass sends f and waits for the listener's answer.
func pass(c *net.UnixConn, f *os.File) error {
	if _, _, err := c.WriteMsgUnix([]byte{0}, unix.UnixRights(int(f.Fd())), nil); err != nil {
		return fmt.Errorf("shared memory: %w", err)
	}
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return fmt.Errorf("no answer to the shared memory: %w", err)
	}
	reason := make([]byte, binary.BigEndian.Uint16(head[:]))
	if _, err := io.ReadFull(c, reason); err != nil {
		return fmt.Errorf("no answer to the shared memory: %w", err)
	}
	if len(reason) > 0 {
		return &listen.Refusal{Reason: string(reason)}
	}
	return nil
}

// answer tells the dialler whether its memory is taken.
func answer(c *net.UnixConn, refused error) error {
	reason := ""
	if refused != nil {
		reason = refused.Error()
		reason = reason[:min(len(reason), listen.MaxReason)]
	}
	_, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reason))), reason...))
	return err
}

// receive answers a caller of the listener. The connection of a rank that knows the
// key waits for Accept.
func (t *Transport) receive(c net.Conn) {
	socket := c.(*net.UnixConn)
	t.mu.Lock()
	endpoint := t.endpoint
	t.mu.Unlock()
	r, err := listen.Answer(c, endpoint, &t.cfg, protocol, func(*listen.Request) error { return nil })
	if err == nil {
		err = t.adopt(r.From, socket)
	}
	if err != nil {
		c.Close()
		if !endpoint.Closed() {
			t.warn.Warn("shm: dropped a caller", "rank", t.cfg.Self.Rank, "err", err)
		}
	}
}

// adopt receives and maps the memory of a rank that knows the key. Its connection
// belongs to this rank from here on, and ends with the Transport.
func (t *Transport) adopt(from int, socket *net.UnixConn) error {
	stop := t.closeWithUs(socket)
	_ = socket.SetDeadline(time.Now().Add(listen.HandshakeTime))
	memory, consumer, refused := t.take(socket)
	err := answer(socket, refused)
	stop()
	if err != nil || refused != nil {
		if refused == nil {
			_ = unix.Munmap(memory)
		}
		return errors.Join(refused, err)
	}
	_ = socket.SetDeadline(time.Time{})
	l := &link{end: consumer, socket: socket, memory: memory}
	if !t.keep(l) {
		_ = unix.Munmap(memory)
		return fifo.ErrClosed
	}
	t.arrived.Put(from, &recvConn{consumer, l})
	return nil
}

// closeWithUs closes socket if the Transport is closed before stop is called.
func (t *Transport) closeWithUs(socket *net.UnixConn) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-t.away:
			socket.Close()
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// take maps the memory that comes over socket.
func (t *Transport) take(socket *net.UnixConn) ([]byte, *fifo.Consumer, error) {
	fd, err := receiveFile(socket)
	if err != nil {
		return nil, nil, fmt.Errorf("rank %d: %w", t.cfg.Self.Rank, err)
	}
	defer unix.Close(fd)
	if err := trust(fd, t.size, t.options.Dir); err != nil {
		return nil, nil, err
	}
	memory, err := share(fd, t.size)
	if err != nil {
		return nil, nil, err
	}
	consumer, err := fifo.NewConsumer(memory, geometry(t.cfg.Limits), t.waiting())
	if err != nil {
		_ = unix.Munmap(memory)
		return nil, nil, err
	}
	return memory, consumer, nil
}

var (
	errNoFile      = errors.New("shared memory did not come with the connection")
	errDescriptors = fmt.Errorf("shared memory came, but this process has no file descriptor left for it: raise ulimit "+
		"-n: %w", unix.EMFILE)
)

// receiveFile is the descriptor that a peer sends. The caller closes it.
func receiveFile(socket *net.UnixConn) (fd int, err error) {
	var word [1]byte
	control := make([]byte, unix.CmsgSpace(4))
	n, m, flags, _, err := socket.ReadMsgUnix(word[:], control) // sets close-on-exec
	if err != nil {
		return -1, err
	}
	if n == 0 {
		return -1, io.ErrUnexpectedEOF
	}
	messages, err := unix.ParseSocketControlMessage(control[:m])
	if err != nil {
		return -1, err
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil && len(fds) > 0 {
			for _, more := range fds[1:] {
				unix.Close(more)
			}
			return fds[0], nil
		}
	}
	if flags&unix.MSG_CTRUNC != 0 { // a descriptor was sent and could not be made here
		return -1, errDescriptors
	}
	return -1, errNoFile
}
