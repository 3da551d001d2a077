package check

import (
	"net"

	"golang.org/x/sys/unix"
)

func kernelSegments(t *net.TCPConn) (s segments) {
	raw, err := t.SyscallConn()
	if err != nil {
		return s
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			s = segments{int(info.Segs_out), int(info.Total_retrans)}
		}
	})
	return s
}
