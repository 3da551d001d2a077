package check

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// tcpInfo is what the kernel knows about a connection; nil if that is not TCP.
func tcpInfo(c net.Conn) (info *unix.TCPInfo) {
	if sealed, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = sealed.NetConn()
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) {
		if i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			info = i
		}
	})
	return info
}

// kernelSegments does not count a segment that was sent again without need: the receiver says of those that it has them
// twice.
func kernelSegments(c net.Conn) (s segments) {
	if info := tcpInfo(c); info != nil {
		s = segments{int(info.Data_segs_out), max(0, int(info.Total_retrans)-int(info.Dsack_dups))}
	}
	return s
}

// packetOf asks the kernel for the size of a full packet.
func packetOf(c net.Conn) packet {
	info := tcpInfo(c)
	if info == nil {
		return packet{plainPacket - plainHeader, plainPacket}
	}
	full := packet{int(info.Snd_mss), int(info.Pmtu)}
	if full.size-full.payload > 2*plainHeader { // the window is smaller than a packet
		full.size = full.payload + plainHeader
	}
	return full
}

func kernelAcknowledges(c net.Conn, late time.Duration) (known, yes bool) {
	info := tcpInfo(c)
	if info == nil {
		return false, false
	}
	return true, info.Unacked == 0 && info.Notsent_bytes == 0 || time.Duration(info.Last_ack_recv)*time.Millisecond < late
}
