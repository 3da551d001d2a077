//go:build !ringo_portable

package socket

import (
	"net"
	"syscall"

	"github.com/ringo-go/ringo/fifo"
	"github.com/ringo-go/ringo/transport/internal/pace"
	"golang.org/x/sys/unix"
)

// flush offers the queue to the kernel. It returns false if the kernel can take no more now,
// true if it has taken all or the sender has failed. The caller holds mu.
func (l *sender) flush() bool {
	if !l.enter() {
		l.fail(fifo.ErrClosed)
		return true
	}
	defer l.leave()
	for len(l.queue) > 0 {
		c := &l.queue[0]
		var n int
		var err error
		head, _ := c.rest(c.off)
		switch {
		case l.seal != nil:
			n, err = l.seal.write(head)
		case c.lend:
			n, err = l.loan.write(l.fd, c)
		default:
			n, err = unix.Write(l.fd, head)
		}
		switch err {
		case nil:
			l.done(n)
		case syscall.EAGAIN:
			return false
		case syscall.EINTR:
			continue
		default:
			l.fail(err)
			return true
		}
	}
	if l.seal == nil {
		return true
	}
	err := l.seal.push()
	if err != nil && err != errAgain {
		l.fail(err)
	}
	return err != errAgain
}

// writer is the background writer.
func (l *sender) writer() {
	var fds [1]unix.PollFd // its own: the sender uses the stream's
	for {
		err := net.ErrClosed
		if l.enter() {
			err = pollOne(&fds, l.fd, false, true, pace.Patience)
			l.leave()
		}
		if err == nil {
			err = l.guard.Aborted() // no deadline: only a wait has one
		}
		l.mu.Lock()
		if err != nil {
			l.fail(err)
		}
		if err != nil || l.flush() {
			l.writing = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}
