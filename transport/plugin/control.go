package plugin

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// A control is the control stream of a connection. A message is a kind (1 byte), a length (2
// bytes, big-endian) and a body of that length.
type control struct {
	c      net.Conn
	ready  chan struct{} // closed when the receiver has accepted
	acked  chan struct{} // closed when the receiver has all slots
	parted chan struct{} // closed at goodbye and at the end of the stream
	last   uint64        // slots before the sender's goodbye; fixed when parted is closed
	reason error         // fifo.ErrClosed after goodbye, else why the stream has ended; fixed likewise
	ended  atomic.Bool   // the stream has ended
}

// Kinds of messages.
const (
	sayHandle  byte = 'h' // from the receiver: device, handle
	sayRefused byte = 'e' // from both: why there is no connection, or none any more
	sayReady   byte = 'r' // from the receiver: it has accepted
	sayGoodbye byte = 'g' // from both: number of slots published
	sayAll     byte = 'a' // from the receiver: it has all slots that were published
)

const maxSaid = 2048

func newControl(c net.Conn) *control {
	listen.KeepAlive(c)
	return &control{c: c, ready: make(chan struct{}), acked: make(chan struct{}), parted: make(chan struct{})}
}

// say sends a message.
func say(c net.Conn, kind byte, body []byte) error {
	body = body[:min(len(body), maxSaid)]
	m := binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(body)))
	_ = c.SetWriteDeadline(time.Now().Add(time.Second)) // the peer always reads, so the buffer does not fill
	_, err := c.Write(append(m, body...))
	return err
}

// hear receives a message.
func hear(r io.Reader) (kind byte, body []byte, err error) {
	var head [3]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint16(head[1:]))
	if len(body) > maxSaid {
		return 0, nil, fmt.Errorf("control message of %d bytes", len(body))
	}
	_, err = io.ReadFull(r, body)
	return head[0], body, err
}

// read receives the peer's messages until the stream ends. At the goodbye it calls bye.
func (s *control) read(bye func()) {
	r := bufio.NewReader(s.c)
	part := func(reason error) {
		if s.reason == nil {
			s.reason = reason
			close(s.parted)
		}
	}
	for {
		kind, body, err := hear(r)
		switch {
		case err != nil:
			part(fmt.Errorf("the peer has gone: %w", err))
		case kind == sayReady && !isClosed(s.ready):
			close(s.ready)
			continue
		case kind == sayAll && !isClosed(s.acked):
			close(s.acked)
			continue
		case kind == sayGoodbye && len(body) == 8 && s.reason == nil:
			s.last = binary.BigEndian.Uint64(body)
			part(fifo.ErrClosed)
			bye()
			continue
		case kind == sayRefused:
			part(fmt.Errorf("the peer has given up: %s", body))
		default:
			part(fmt.Errorf("the peer sent an unknown control message %q of %d bytes", kind, len(body)))
		}
		s.ended.Store(true)
		return
	}
}

// goodbye tells the peer that this end closes, after so many slots.
func (s *control) goodbye(slots uint64) {
	_ = say(s.c, sayGoodbye, binary.BigEndian.AppendUint64(nil, slots)) // a peer that is gone needs none
}

// why is the reason why the peer has parted, nil if it has not.
func (s *control) why() error {
	if isClosed(s.parted) {
		return s.reason
	}
	return nil
}

// verdict is the error for a failed call of the plugin: the plugin often notices before the control
// stream that the peer has closed or died, and returns another error.
func (s *control) verdict(failed error, guard *fifo.Guard) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 15 {
		select {
		case <-s.parted:
			if s.reason == fifo.ErrClosed {
				return s.reason
			}
			return fmt.Errorf("%w (%w)", s.reason, failed)
		case <-tick.C:
		}
		if guard.Err() != nil {
			break
		}
	}
	return failed
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// poll calls try until it is done, the peer has parted or ctx has ended.
func (s *control) poll(ctx context.Context, try func() (done bool, err error)) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.parted:
			return s.reason
		case <-time.After(pause):
		}
	}
}
