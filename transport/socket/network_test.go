package socket

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/secure"
	"github.com/ringo-go/ringo/transport"
)

// TestNetworkProbe: the network is found where there is an interface, or where none is needed.
func TestNetworkProbe(t *testing.T) {
	probe := func(o transport.NetworkOptions) []transport.NetworkDevice {
		f, err := Network.Probe(o)
		require.NoError(t, err)
		return f.Devices
	}
	named := func(name string) []transport.NetworkDevice { return []transport.NetworkDevice{{Name: name}} }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, named("the program's listener"),
		probe(transport.NetworkOptions{Sockets: &transport.Sockets{Listener: l}, Interface: "none"}))
	require.Equal(t, named("this host"), probe(transport.NetworkOptions{SocketNetwork: "unix", Interface: "none"}))
	require.Equal(t, named("this host"), probe(transport.NetworkOptions{Local: true}))

	ifs, err := interfaces()
	require.NoError(t, err)
	first, err := choose(ifs, Options{})
	require.NoError(t, err)
	for _, local := range []bool{true, false} {
		o := transport.NetworkOptions{Local: local, Interface: "=" + first.Iface, Sockets: &transport.Sockets{}}
		require.Equal(t, []transport.NetworkDevice{{Name: first.Iface, Mbps: speedOf(first.Iface),
			Detail: first.Addr.String()}}, probe(o))
		o.Interface = "=no-such-interface"
		_, err = Network.Probe(o)
		require.ErrorContains(t, err, `no interface named "=no-such-interface"`)
	}
	addr, err := Address(Options{IfName: "=" + first.Iface})
	require.NoError(t, err)
	require.Equal(t, first.Addr, addr)
	_, err = Address(Options{IfName: "=no-such-interface"})
	require.Error(t, err)
	require.Zero(t, speedOf("no-such-interface"))

	o := transport.NetworkOptions{SocketNetwork: "unix", Interface: "eth", Family: 6, Streams: 3, Local: true,
		TLS: new(secure.Config), Sockets: new(transport.Sockets)}
	got := options(o)
	require.Equal(t, Options{Network: "unix", IfName: "eth", Family: 6, Streams: 3, Local: true, TLS: o.TLS,
		Sockets: o.Sockets}, got)
}
