//go:build !linux || ringo_portable

package socket

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/ringo-go/ringo/transport/internal/pace"
)

// errAgain means that a stream has nothing to read now.
var errAgain = errors.New("nothing to read")

// slowTries says whether each try of a wait sleeps, see pace.Waiter.Slow.
const slowTries = true

// A stream is one socket of package net. One goroutine at a time may read and one
// may write; interrupt and close may be called from any.
type stream struct {
	conn  net.Conn
	moved chan struct{} // holds a token when something was written
}

func newStream(_ *Transport, c net.Conn) (*stream, error) {
	return &stream{conn: c, moved: make(chan struct{}, 1)}, nil
}

// bridged: a connection of the program's own is used as it is.
func (s *stream) bridged() bool { return false }

// read waits a moment for bytes for b, or for b2 if b is empty. It returns errAgain
// if none come, and io.EOF at the end.
func (s *stream) read(b, b2 []byte) (int, error) {
	if len(b) == 0 {
		b = b2
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(pace.Patience)); err != nil {
		return 0, err
	}
	n, err := s.conn.Read(b)
	if n > 0 {
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errAgain
	}
	return 0, err
}

// write writes all of b.
func (s *stream) write(b []byte) (int, error) {
	n, err := s.conn.Write(b)
	select {
	case s.moved <- struct{}{}:
	default:
	}
	return n, err
}

// poll waits until something was written, at most d. A read waits by itself.
func (s *stream) poll(in, out bool, d time.Duration) error {
	if out {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-s.moved:
		case <-t.C:
		}
	}
	return nil
}

// unacked does not matter where nothing is lent and no credits come back.
func (s *stream) unacked() int { return 0 }

// endWriting tells the other end that nothing more comes.
func (s *stream) endWriting() {
	if c, ok := s.conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
}

// interrupt ends both directions and wakes whoever waits.
func (s *stream) interrupt() { _ = s.conn.Close() }

func (s *stream) close() { _ = s.conn.Close() }

// gone reports whether a write's err means that the other end has closed.
func gone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, errReset) || errors.Is(err, errAborted)
}

// allocate makes memory; release gives it back.
func allocate(n int) ([]byte, error) { return make([]byte, n), nil }

func release([]byte) {}
