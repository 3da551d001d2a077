package check

import (
	"net"

	"golang.org/x/sys/unix"
)

// kernelSegments does not count a segment that was sent again without need: the receiver says of those that it has them
// twice.
func kernelSegments(t *net.TCPConn) (s segments) {
	raw, err := t.SyscallConn()
	if err != nil {
		return s
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			s = segments{int(info.Data_segs_out), max(0, int(info.Total_retrans)-int(info.Dsack_dups))}
		}
	})
	return s
}

// packetOf asks the kernel for the size of a full packet.
func packetOf(c net.Conn) packet {
	full := packet{plainPacket - plainHeader, plainPacket}
	t, ok := c.(*net.TCPConn)
	if !ok {
		return full
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return full
	}
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		mss, mtu := int(info.Snd_mss), int(info.Pmtu)
		if mtu-mss > 2*plainHeader { // the window is smaller than a packet
			mtu = mss + plainHeader
		}
		full = packet{mss, mtu}
	})
	return full
}
