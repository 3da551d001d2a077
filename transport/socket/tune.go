package socket

import (
	"net"
	"time"

	"github.com/ringo-go/ringo/internal/secure"
)

// unixBuffer is what Unix sockets are asked to hold: they do not grow theirs.
// The kernel cuts it to net.core.wmem_max.
const unixBuffer = 4 << 20

// tune sets the options of a socket that has passed the handshake; one that
// cannot be set is left. TCP_NODELAY is Go's default. TCP buffers are left to
// the kernel, which grows them as needed and further than SO_SNDBUF may.
//
// A host that falls silent is found by keepalive, in 20 s: some rank always
// waits to receive from it on a socket with nothing in flight. TCP_USER_TIMEOUT
// would find it on the others, but would also kill the connection to a rank
// that is busy elsewhere for longer than that and lets its window fill.
func tune(c net.Conn) {
	switch c := secure.Below(c).(type) {
	case *net.UnixConn:
		_ = c.SetWriteBuffer(unixBuffer)
		_ = c.SetReadBuffer(unixBuffer)
	case *net.TCPConn:
		_ = c.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3,
		})
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
