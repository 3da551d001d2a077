package bootstrap

import (
	"bytes"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/test/need"
)

// The kernel watches over connections. A test cannot make a host silent, but it
// can read the options.
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
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0}, // it would end connections to stopped processes
	} {
		require.NoError(t, raw.Control(func(fd uintptr) {
			got, err := unix.GetsockoptInt(int(fd), o.level, o.name)
			require.NoError(t, err)
			require.Equal(t, o.want, got, "option %d", o.name)
		}))
	}
}

// linkTo is a link that gives up a silent host after d, and the connection at its other end.
func linkTo(t *testing.T, d time.Duration) (*link, *net.TCPConn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	far, err := ln.Accept()
	require.NoError(t, err)
	l := newLink(conn)
	l.patience = d
	t.Cleanup(func() { l.close(); far.Close() })
	return l, far.(*net.TCPConn)
}

// A stopped process reads nothing, but its kernel answers: the link stays, however much is on its way.
func TestLinkToStoppedProcess(t *testing.T) {
	t.Parallel()
	l, far := linkTo(t, 100*time.Millisecond)
	big := &rendezvous.Gathered{Data: [][]byte{make([]byte, 16<<20)}}
	l.send(big)
	ended := make(chan error, 1)
	go func() { _, err := l.receive(rendezvous.MaxBody); ended <- err }()
	raw, err := l.tcp.SyscallConn()
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the kernel has asked for room three times, later and later
		var i *unix.TCPInfo
		require.NoError(t, raw.Control(func(fd uintptr) {
			i,
				err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		}))
		return err == nil && i.Backoff >= 3
	}, 30*time.Second, 10*time.Millisecond)
	require.Empty(t, ended)
	m, err := newLink(far).receive(rendezvous.MaxBody)
	require.NoError(t, err)
	require.True(t, bytes.Equal(rendezvous.Encode(big), rendezvous.Encode(m)))
	far.Close()
	require.Equal(t, "its connection ended without goodbye", explain(<-ended))
}

// A host that has vanished answers nothing. Here, a filter of the kernel drops all packets.
func TestLinkToSilentHost(t *testing.T) {
	t.Parallel()
	l, far := linkTo(t, 100*time.Millisecond)
	raw, err := far.SyscallConn()
	require.NoError(t, err)
	drop := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	require.NoError(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: 1, Filter: &drop})
	}))
	if errors.Is(err, unix.EPERM) {
		need.Missing(t, "root", "a filter of a TCP socket: "+err.Error())
	}
	require.NoError(t, err)
	l.send(&rendezvous.Bye{})
	l.conn.SetReadDeadline(time.Now().Add(30 * time.Second)) // look comes first
	began := time.Now()
	_, err = l.receive(rendezvous.MaxBody)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Less(t, time.Since(began), 25*time.Second)
	require.Contains(t, explain(err), "its host did not answer for")
}
