package socket

import (
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errAgain is what a stream says that cannot give or take a byte now.
const errAgain = unix.EAGAIN

// A stream is one socket, read and written without waiting. One goroutine at a time may
// use it; shutdown and close may be called from any.
//
// Its calls go straight to the descriptor and not through package net, whose
// reads park the goroutine in the runtime's poller: that wakes in 15 to 30 µs,
// a spinning read in 4. RawConn.Control keeps the descriptor from being closed,
// and its number from being reused, under a call.
type stream struct {
	conn net.Conn
	raw  syscall.RawConn

	// Arguments and results of the two functions, which are made once: a
	// closure for each call would be an allocation for each call.
	b, b2    []byte
	n        int
	err      error
	fds      [1]unix.PollFd
	ms       int
	readNow  func(fd uintptr)
	writeNow func(fd uintptr)
	pollNow  func(fd uintptr)
}

func newStream(c net.Conn) (*stream, error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &stream{conn: c, raw: raw}
	s.readNow = func(fd uintptr) {
		if len(s.b2) == 0 {
			s.n, s.err = sysRead(int(fd), s.b)
		} else {
			s.n, s.err = sysReadv(int(fd), s.b, s.b2)
		}
	}
	s.writeNow = func(fd uintptr) { s.n, s.err = sysWrite(int(fd), s.b) }
	s.pollNow = func(fd uintptr) {
		s.fds[0].Fd, s.fds[0].Revents = int32(fd), 0
		_, s.err = unix.Poll(s.fds[:], s.ms)
	}
	return s, nil
}

// read reads what is there into b and then b2, which are not both empty. It
// returns errAgain if nothing is there, and io.EOF at the end.
func (s *stream) read(b, b2 []byte) (int, error) {
	s.b, s.b2 = b, b2
	err := s.raw.Control(s.readNow)
	s.b, s.b2 = nil, nil
	if err == nil {
		err = s.err
	}
	switch {
	case err == unix.EINTR:
		return 0, errAgain
	case err != nil:
		return 0, err
	case s.n == 0:
		return 0, io.EOF
	}
	return s.n, nil
}

// write writes what fits of b. It returns errAgain if nothing does.
func (s *stream) write(b []byte) (int, error) {
	s.b = b
	err := s.raw.Control(s.writeNow)
	s.b = nil
	if err == nil {
		err = s.err
	}
	switch {
	case err == unix.EINTR:
		return 0, errAgain
	case err != nil:
		return 0, err
	}
	return s.n, nil
}

// poll blocks the thread until the stream can be read (in) or written (out),
// or d has passed.
func (s *stream) poll(in, out bool, d time.Duration) error {
	s.ms, s.fds[0].Events = int(d/time.Millisecond), 0
	if in {
		s.fds[0].Events |= unix.POLLIN
	}
	if out {
		s.fds[0].Events |= unix.POLLOUT
	}
	err := s.raw.Control(s.pollNow)
	if err == nil && s.err != unix.EINTR {
		err = s.err
	}
	return err
}

// farewell writes the credit of 0 that says that the receiver closes. It may be
// called beside the goroutine that uses the stream.
func (s *stream) farewell() {
	_ = s.raw.Control(func(fd uintptr) { _, _ = sysWrite(int(fd), []byte{0}) })
}

// unacked is how many bytes the other end's kernel does not have yet.
func (s *stream) unacked() (n int) {
	if _, ok := s.conn.(*net.TCPConn); ok { // a Unix socket has no way between
		_ = s.raw.Control(func(fd uintptr) { n = sysUnacked(int(fd)) })
	}
	return n
}

// shutdown ends both directions, or only the writing one, and wakes whoever
// polls.
func (s *stream) shutdown(how int) {
	_ = s.raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), how) })
}
