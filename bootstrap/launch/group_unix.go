//go:build unix

package launch

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// isTerminal reports whether f is a terminal: only one has a process group in its foreground.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// A reservation is a port of loopback that the kernel gives to nobody else.
type reservation struct {
	fd   int
	addr string
}

// reserve binds a socket and does not listen on it. With SO_REUSEPORT a hub of
// the same user can bind the port too and listen there, and nobody else can.
func reserve() (*reservation, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	port, err := bindLoopback(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return &reservation{fd: fd, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, nil
}

func bindLoopback(fd int) (port int, err error) {
	for _, opt := range []int{unix.SO_REUSEADDR, unix.SO_REUSEPORT} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, opt, 1); err != nil {
			return 0, err
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return sa.(*unix.SockaddrInet4).Port, nil
}

func (r *reservation) Close() error { return unix.Close(r.fd) }
