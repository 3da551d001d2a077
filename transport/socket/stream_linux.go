//go:build !ringo_portable

package socket

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/internal/secure"
)

// errAgain means that a stream cannot give or take a byte now.
const errAgain = unix.EAGAIN

// slowTries says whether each try of a wait sleeps, see pace.Waiter.Slow.
const slowTries = false

// A stream is one socket, read and written without waiting. One goroutine at a
// time may use it; interrupt and close may be called from any.
//
// A stream has a descriptor of its own, outside of package net and of the
// runtime's poller. A read that parks in the poller wakes in 15 to 30 µs, a
// spinning one in 4; and as long as the poller knows a descriptor, every slot that
// arrives wakes a thread of the runtime, which takes the core from a spinning rank.
type stream struct {
	fd     int
	tcp    bool
	seal   *seal   // nil in clear
	bridge *bridge // nil if fd is the connection itself
	// the owner and calls under way; the last one closes fd, so a call never meets a reused number
	refs atomic.Int32
	fds  [1]unix.PollFd
}

// newStream takes over the socket of c and closes c, or takes a socket of a bridge to c.
func newStream(t *Transport, c net.Conn) (_ *stream, err error) {
	s := &stream{}
	below := secure.Below(c)
	switch below.(type) {
	case *net.TCPConn:
		s.tcp = true
	case *net.UnixConn:
	default:
		if below, s.bridge, err = newBridge(t, below); err != nil {
			return nil, err
		}
	}
	defer below.Close()
	defer func() {
		if err != nil {
			s.bridge.end()
		}
	}()
	raw, err := below.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var dupErr error
	err = raw.Control(func(fd uintptr) {
		if s.fd, dupErr = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3); dupErr == nil {
			dupErr = unix.SetNonblock(s.fd, true)
		}
	})
	if err = cmp.Or(err, dupErr); err != nil {
		if s.fd > 0 {
			unix.Close(s.fd)
		}
		return nil, fmt.Errorf("descriptor: %w", err)
	}
	if sealed, ok := c.(*secure.Conn); ok {
		s.seal = newSeal(s.fd, sealed)
	}
	s.refs.Store(1)
	return s, nil
}

// bridged reports whether the socket leads to a connection of the program's own.
func (s *stream) bridged() bool { return s.bridge != nil }

// enter begins a call on the descriptor. It returns false after close.
func (s *stream) enter() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *stream) leave() {
	if s.refs.Add(-1) == 0 {
		_ = unix.Close(s.fd)
		s.bridge.end()
	}
}

// close gives the descriptor back when the last call on it has ended. Call close once;
// an interrupt before it ends calls that sleep.
func (s *stream) close() { s.leave() }

// read reads available bytes into b and then b2, which are not both empty. It returns
// errAgain if there are none, and io.EOF at the end.
func (s *stream) read(b, b2 []byte) (n int, err error) {
	if !s.enter() {
		return 0, net.ErrClosed
	}
	defer s.leave()
	if s.seal != nil {
		return s.seal.read(b, b2)
	}
	if len(b2) == 0 {
		n, err = unix.Read(s.fd, b)
	} else {
		n, err = unix.Readv(s.fd, [][]byte{b, b2})
	}
	return received(n, err)
}

// received turns the result of a read system call into that of stream.read.
func received(n int, err error) (int, error) {
	switch {
	case err == unix.EINTR:
		return 0, errAgain
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// write writes as much of b as fits. It returns errAgain if nothing does.
func (s *stream) write(b []byte) (int, error) {
	if !s.enter() {
		return 0, net.ErrClosed
	}
	defer s.leave()
	if s.seal != nil {
		return s.seal.write(b)
	}
	n, err := unix.Write(s.fd, b)
	if err == unix.EINTR {
		err = errAgain
	}
	return max(n, 0), err
}

// poll blocks the thread until the stream can be read (in) or written (out),
// or d has passed.
func (s *stream) poll(in, out bool, d time.Duration) error {
	if !s.enter() {
		return net.ErrClosed
	}
	defer s.leave()
	out = out || s.seal != nil && s.seal.pending() > 0
	return pollOne(&s.fds, s.fd, in, out, d)
}

func pollOne(fds *[1]unix.PollFd, fd int, in, out bool, d time.Duration) error {
	fds[0] = unix.PollFd{Fd: int32(fd)}
	if in {
		fds[0].Events |= unix.POLLIN
	}
	if out {
		fds[0].Events |= unix.POLLOUT
	}
	_, err := unix.Poll(fds[:], int(d/time.Millisecond))
	if err == unix.EINTR {
		return nil
	}
	return err
}

// unacked is how many bytes the other end's kernel does not have yet.
func (s *stream) unacked() int {
	if !s.tcp || !s.enter() { // a Unix socket delivers at once
		return 0
	}
	defer s.leave()
	sealed := 0
	if s.seal != nil {
		sealed = s.seal.pending()
	}
	p := []unix.PollFd{{Fd: int32(s.fd)}}
	_, err := unix.Poll(p, 0)
	for err == unix.EINTR { // a signal, which the Go runtime sends, is no news of the stream
		_, err = unix.Poll(p, 0)
	}
	if err != nil || p[0].Revents != 0 {
		return 0 // reset: nothing will be acknowledged any more
	}
	n, err := unix.IoctlGetInt(s.fd, unix.SIOCOUTQ)
	if err != nil {
		return sealed
	}
	return sealed + n
}

// endWriting tells the other end that nothing more comes.
func (s *stream) endWriting() { s.shutdown(unix.SHUT_WR) }

// interrupt ends both directions and wakes whoever polls.
func (s *stream) interrupt() { s.shutdown(unix.SHUT_RDWR) }

func (s *stream) shutdown(how int) {
	if s.enter() {
		defer s.leave()
		_ = unix.Shutdown(s.fd, how)
	}
}

// gone reports whether a write's err means that the other end has closed.
func gone(err error) bool { return err == unix.EPIPE || err == unix.ECONNRESET }

// allocate makes page-aligned memory; release gives it back.
func allocate(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func release(b []byte) { _ = unix.Munmap(b) }
