package transport

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A listener has an address and does nothing.
type listener struct {
	net.Listener
	at string
}

func (l listener) Addr() net.Addr { return addr(l.at) }

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// Other ranks reach an address that is one place and one word.
func TestReached(t *testing.T) {
	reached := func(address, listens string) (string, error) {
		return (&Sockets{Listener: listener{at: listens}, Address: address}).Reached()
	}
	for _, good := range []string{"10.0.0.1:80", "[fe80::1]:80", "service.mesh", "[::1%lo]:80", "host:port:more",
		strings.Repeat("x", maxSocketsAddress)} {
		for _, given := range []bool{true, false} {
			at, listens := good, "0.0.0.0:1"
			if !given {
				at, listens = "", good
			}
			got, err := reached(at, listens)
			require.NoError(t, err)
			require.Equal(t, good, got)
		}
	}
	for _, all := range []string{"0.0.0.0:80", "[::]:80", ":80"} {
		_, err := reached("", all)
		require.EqualError(t, err,
			`Config.Sockets: address "`+all+`" is every interface: set Sockets.Address to where the other ranks reach this one`)
	}
	for _, bad := range []string{"two words", "a#b", "tab\t", "bell\a", strings.Repeat("x", maxSocketsAddress+1)} {
		_, err := reached(bad, "10.0.0.1:80")
		require.ErrorContains(t, err,
			"want at most 400 bytes without blanks and #; set Sockets.Address to what the other ranks' Dial takes")
	}
	_, err := reached("", "")
	require.ErrorContains(t, err, `address "": want at most 400 bytes`)
}

// A program's Dial is called as it is, and its errors say whose they are.
func TestDialer(t *testing.T) {
	require.Nil(t, (*Sockets)(nil).Dialer())
	require.Nil(t, (&Sockets{}).Dialer())
	refused := errors.New("refused")
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	for address, answer := range map[string]struct {
		conn net.Conn
		err  error
		want string
	}{
		"a": {conn: here},
		"b": {err: refused, want: `Config.Sockets.Dial("b"): refused`},
		"c": {want: `Config.Sockets.Dial("c"): it returned neither a connection nor an error`},
	} {
		s := Sockets{Dial: func(_ context.Context, network, to string) (net.Conn, error) {
			require.Equal(t, "tcp "+address, network+" "+to)
			return answer.conn, answer.err
		}}
		c, err := s.Dialer()(context.Background(), "tcp", address)
		require.Equal(t, answer.conn, c)
		if answer.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, answer.want)
		require.Equal(t, answer.err != nil, errors.Is(err, refused))
	}
}

// Each path has its name, and the first ones reach the peer's memory.
func TestGPUPaths(t *testing.T) {
	names := map[GPUPath]string{NoPath: "nothing", OverP2P: "p2p", OverPCIe: "pcie", OverHost: "host memory",
		OverBridge: "bridge"}
	require.Len(t, GPUPathNames, len(names))
	for p, name := range names {
		require.Equal(t, name, p.String())
		require.Equal(t, p == OverP2P || p == OverPCIe, p.Peer())
	}
	require.EqualError(t, &LengthError{Got: 3, Want: 5}, "slot of 3 bytes where one of 5 was expected")
}
