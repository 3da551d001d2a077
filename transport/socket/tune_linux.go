package socket

import (
	"net"

	"golang.org/x/sys/unix"
)

// uncongested selects TCP Reno for a connection within a host. The pacing of BBR, the default of
// some systems, nearly doubles the latency of small slots, and a host's own memory is never congested.
func uncongested(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno")
	})
}

// unixPath is an abstract name: it needs no folder and leaves no file.
func unixPath(name string) string { return "@" + name }
