package check

import (
	"net"

	"golang.org/x/sys/unix"
)

// countSegments asks the kernel about a connection; zero if that is not TCP. A segment that was sent again without need
// does not count: the receiver says of those that it has them twice.
func countSegments(c net.Conn) (s segments) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return s
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return s
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			s = segments{int(info.Data_segs_out), int(info.Total_retrans) - int(info.Dsack_dups)}
		}
	})
	return s
}
