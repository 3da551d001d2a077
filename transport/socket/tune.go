package socket

import (
	"net"

	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/transport/internal/listen"
)

// unixBuffer is the buffer that Unix sockets ask for, in bytes: they do not grow
// theirs. The kernel cuts it to net.core.wmem_max.
const unixBuffer = 4 << 20

// tune sets the options of a socket that has passed the handshake; an option that
// cannot be set stays as it was. TCP_NODELAY is Go's default. TCP buffers are left
// to the kernel, which grows them as needed and further than SO_SNDBUF may.
func tune(c net.Conn) {
	switch c := secure.Below(c).(type) {
	case *net.UnixConn:
		_ = c.SetWriteBuffer(unixBuffer)
		_ = c.SetReadBuffer(unixBuffer)
	case *net.TCPConn:
		listen.KeepAlive(c)
		if here(c.LocalAddr(), c.RemoteAddr()) {
			uncongested(c)
		}
	}
}

// here reports whether both ends of a TCP connection are on this host.
func here(local, remote net.Addr) bool {
	l, lok := local.(*net.TCPAddr)
	r, rok := remote.(*net.TCPAddr)
	return lok && rok && l.IP.Equal(r.IP)
}
