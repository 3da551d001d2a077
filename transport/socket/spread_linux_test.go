//go:build !ringo_portable

package socket

import (
	"net/netip"
	"testing"

	"github.com/ringo-go/ringo/internal/test/conntest"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// nics are the interfaces that the transport gets: addresses of loopback.
func nics() ([]iface, error) {
	return machine("nic0 127.0.0.1/8", "nic1 127.0.0.2/8", "nic2 127.0.0.3/8"), nil
}

// Streams are spread over the peer's interfaces, beginning with Rail; without Options.Streams there is
// one for each. An interface that cannot be reached is left out, with one line in the log.
func TestSpread(t *testing.T) {
	lost := func(a *address) { a.TCP[1].At = netip.MustParseAddrPort("127.0.0.2:1") }
	for name, test := range map[string]struct {
		o      Options
		change func(*address)
		want   []int // last numbers of addresses
		lines  int
	}{
		"one each":       {Options{}, nil, []int{1, 2, 3}, 0},
		"from the rail":  {Options{Rail: 4}, nil, []int{2, 3, 1}, 0},
		"two":            {Options{Streams: 2}, nil, []int{1, 2}, 0},
		"more":           {Options{Streams: 5}, nil, []int{1, 2, 3, 1, 2}, 0},
		"one lost":       {Options{Streams: 5}, lost, []int{1, 3, 3, 1, 3}, 1},
		"the first lost": {Options{Rail: 1}, lost, []int{3, 3, 1}, 1},
		"TLS":            {Options{TLS: byKey}, nil, []int{1, 2, 3}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			test.o.Network, test.o.IfName = "tcp", "nic0,nic1,nic2"
			a, log := made(t, 2, large, test.o)
			b, _ := made(t, 1, large, test.o)
			a.ifaces, b.ifaces = nics, nics
			addr, err := b.Listen()
			require.NoError(t, err)
			where, err := parseAddress(addr)
			require.NoError(t, err)
			if test.change != nil {
				test.change(&where)
			}
			send, err := a.Dial(b.cfg.Self, where.text())
			require.NoError(t, err)
			recv, err := b.Accept(a.cfg.Self)
			require.NoError(t, err)
			var got []int
			for _, l := range send.(*sendConn).senders {
				to, err := unix.Getpeername(l.fd)
				require.NoError(t, err)
				got = append(got, int(to.(*unix.SockaddrInet4).Addr[3]))
			}
			require.Equal(t, test.want, got)
			require.Equal(t, test.lines, lines(log))
			require.NoError(t, conntest.Flow(send, recv, 20, func(int) int { return 100_000 }))
		})
	}
}
