package bootstrap

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout ends the connection when sent bytes stay unacknowledged for
// d; keep-alive probes are not sent then, and retransmission takes minutes.
func setUserTimeout(c *net.TCPConn, d time.Duration) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	ctl := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
	if ctl != nil {
		return ctl
	}
	return err
}
