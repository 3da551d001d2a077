package socket

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/transport"
)

func TestAddress(t *testing.T) {
	for _, a := range []address{
		{TCP: ports("192.0.2.7:40123")},
		{TCP: ports("[2001:db8::1]:1"), Unix: "@ringo-X"},
		{TCP: []port{{netip.MustParseAddrPort("192.0.2.7:1"), "X"}, {netip.MustParseAddrPort("[2001:db8::1]:1"), "Y"}}},
		{Unix: "/tmp/a=b"},
	} {
		got, err := parseAddress(a.text())
		require.NoError(t, err)
		require.Equal(t, a, got)
	}
	a := address{TCP: ports("[fe80::1%eth0]:7")}
	require.Equal(t, "tcp=[fe80::1]:7", string(a.text()), "a zone means nothing elsewhere")
	for _, s := range []string{
		"", " ", "tcp", "tcp=", "tcp=1.2.3.4", "tcp=1.2.3.4:0", "tcp=1.2.3.4:99999", "unix=", "udp=1.2.3.4:5",
		strings.Repeat("tcp=1.2.3.4:5 ", maxInterfaces+1), "unix=a unix=b", "unix=a\x00b", strings.Repeat("x", 1<<20),
		"tcp=[fe80::1%eth0]:7",
	} {
		_, err := parseAddress([]byte(s))
		require.Error(t, err, "%.80q", s)
	}
}

func ports(at string) []port { return []port{{At: netip.MustParseAddrPort(at)}} }

func FuzzAddress(f *testing.F) {
	f.Add([]byte("tcp=192.0.2.7:40123 unix=@ringo-6f1c"))
	f.Add([]byte("unix=\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseAddress(b)
		if err != nil {
			return
		}
		again, err := parseAddress(a.text())
		require.NoError(t, err)
		require.Equal(t, a.Unix, again.Unix)
		require.Len(t, again.TCP, len(a.TCP))
		for i := range a.TCP {
			require.Equal(t, a.TCP[i].At.Addr().Unmap(), again.TCP[i].At.Addr())
			require.Equal(t, a.TCP[i].Endpoint, again.TCP[i].Endpoint)
		}
	})
}

// A peer with a Unix socket is reached by that for all streams, and by TCP if that fails. Else streams are spread.
func TestRoutes(t *testing.T) {
	offered := address{
		TCP:  []port{{At: netip.MustParseAddrPort("192.0.2.7:1")}, {At: netip.MustParseAddrPort("192.0.2.8:1")}},
		Unix: "@ringo-X",
	}
	self := transport.Info{Host: "here"}
	targets := func(list []route) (all []string) {
		for _, r := range list {
			all = append(all, r.Network+" "+r.Addr)
		}
		return all
	}
	for _, test := range []struct {
		peer    transport.Info
		options Options
		stream  int
		want    []string
	}{
		{self, Options{}, 1, []string{"unix @ringo-X", "tcp 192.0.2.7:1", "tcp 192.0.2.8:1"}},
		{self, Options{Network: "unix"}, 0, []string{"unix @ringo-X"}},
		{self, Options{Network: "tcp"}, 0, []string{"tcp 192.0.2.7:1", "tcp 192.0.2.8:1"}},
		{transport.Info{Host: "there"}, Options{}, 1, []string{"tcp 192.0.2.8:1", "tcp 192.0.2.7:1"}},
		{transport.Info{Host: "there"}, Options{Rail: 1}, 0, []string{"tcp 192.0.2.8:1", "tcp 192.0.2.7:1"}},
	} {
		w, err := New(transport.Config{Self: self}, test.options).routes(test.peer, offered)
		require.NoError(t, err)
		require.Equal(t, test.want, targets(w.of(test.stream)), test)
	}
	_, err := New(transport.Config{Self: self}, Options{Network: "unix"}).routes(transport.Info{Host: "there"}, offered)
	require.ErrorContains(t, err, `it offers no socket that this rank may use (network "unix")`)
}
