package bootstrap

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The kernel watches over connections; a host cannot be made silent here, but
// the options can be read.
func TestLinksAreWatched(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	l := newLink(conn)
	defer l.close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	for _, o := range []struct{ level, name, want int }{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 5},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 2},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 5},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 15000},
	} {
		require.NoError(t, raw.Control(func(fd uintptr) {
			got, err := unix.GetsockoptInt(int(fd), o.level, o.name)
			require.NoError(t, err)
			require.Equal(t, o.want, got, "option %d", o.name)
		}))
	}
}
