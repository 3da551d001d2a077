package socket

import (
	"net"

	"golang.org/x/sys/unix"
)

// reno does not pace. Between two ends of one host there is nothing to congest,
// and the pacing of BBR, where that is the default, nearly doubles the latency
// of small slots.
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
