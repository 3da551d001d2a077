package socket

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine makes interfaces of "name address address" lines.
func machine(lines ...string) (ifs []iface) {
	for _, l := range lines {
		w := strings.Fields(l)
		f := iface{Name: w[0]}
		for _, a := range w[1:] {
			f.Addrs = append(f.Addrs, netip.MustParsePrefix(a))
		}
		ifs = append(ifs, f)
	}
	return ifs
}

func TestChoose(t *testing.T) {
	lo, virbr := "lo 127.0.0.1/8 ::1/128", "virbr0 192.168.122.1/24"
	docker, eth0 := "docker0 172.17.0.1/16", "eth0 10.0.0.2/24 fe80::2/64 2001:db8::2/64"
	eth1, ib := "eth1 10.1.0.2/24", "ib0 10.2.0.2/24"
	link := "wlan0 fe80::7/64"
	for _, c := range []struct {
		name string
		ifs  []string
		o    Options
		want string // interface and address, or the error
	}{
		{"infiniband first", []string{lo, docker, eth0, ib}, Options{}, "ib0 10.2.0.2"},
		{"then the first ordinary one", []string{lo, virbr, docker, eth0, eth1}, Options{}, "eth0 10.0.0.2"},
		{"docker before lo", []string{lo, virbr, docker}, Options{}, "docker0 172.17.0.1"},
		{"lo before virbr", []string{virbr, lo}, Options{}, "lo 127.0.0.1"},
		{"virbr last", []string{virbr}, Options{}, "virbr0 192.168.122.1"},
		{"nothing", nil, Options{}, "no interface; there are: none that is up"},
		{"IPv6", []string{lo, eth0}, Options{Family: 6}, "eth0 2001:db8::2"},
		{"IPv4 skips what has none", []string{link, lo}, Options{Family: 4}, "lo 127.0.0.1"},
		{"link-local has a zone", []string{link}, Options{}, "wlan0 fe80::7%wlan0"},
		{"no such family", []string{ib}, Options{Family: 6},
			"no interface with an IPv6 address; there are: ib0[10.2.0.2/24]"},
		{"prefix", []string{lo, ib, eth0, eth1}, Options{IfName: "eth"}, "eth0 10.0.0.2"},
		{"list of prefixes", []string{lo, eth0, eth1}, Options{IfName: "wlan, eth1"}, "eth1 10.1.0.2"},
		{"named beats our order", []string{lo, ib}, Options{IfName: "lo"}, "lo 127.0.0.1"},
		{"the first named", []string{docker, ib}, Options{IfName: "ib,docker"}, "docker0 172.17.0.1"},
		{"excluded prefix", []string{lo, ib, eth0, eth1}, Options{IfName: "^ib,eth0"}, "eth1 10.1.0.2"},
		{"excluded keeps the order", []string{lo, eth0, ib}, Options{IfName: "^eth"}, "ib0 10.2.0.2"},
		{"exact", []string{"eth10 10.3.0.2/24", eth1}, Options{IfName: "=eth1"}, "eth1 10.1.0.2"},
		{"exact exclusion", []string{eth1, "eth10 10.3.0.2/24"}, Options{IfName: "^=eth1"}, "eth10 10.3.0.2"},
		{"find or fail", []string{lo, eth1}, Options{IfName: "=eth"},
			`no interface named "=eth"; there are: lo[127.0.0.1/8 ::1/128], eth1[10.1.0.2/24]`},
		{"empty words", []string{eth1}, Options{IfName: " , "}, "eth1 10.1.0.2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := choose(machine(c.ifs...), c.o)
			if err != nil {
				require.EqualError(t, err, c.want)
				return
			}
			require.Equal(t, c.want, p.Iface+" "+p.Addr.String())
		})
	}
}

// Several words are several interfaces.
func TestChooseAll(t *testing.T) {
	ifs := machine("lo 127.0.0.1/8", "eth0 10.0.0.2/24 2001:db8::2/64", "eth1 10.1.0.2/24", "eth10 10.3.0.2/24",
		"wlan0 fe80::7/64", "lo1 127.0.0.9/8")
	for name, want := range map[string]string{
		"": "eth0", "eth": "eth0", "eth1,eth0": "eth1 eth0", "=eth10,eth1": "eth10 eth1", "eth1,eth1,eth1": "eth1 eth10",
		"ib,eth0,ens": "eth0", "lo,eth1": "eth1", "wlan0,eth1": "eth1", "lo,lo1": "lo lo1", "^lo,eth0": "eth1",
		"wlan0,=x": "wlan0", "wlan0,lo": "lo",
	} {
		all, err := chooseAll(ifs, Options{IfName: name})
		require.NoError(t, err, name)
		var got []string
		for _, p := range all {
			got = append(got, p.Iface)
		}
		require.Equal(t, want, strings.Join(got, " "), name)
	}
	_, err := chooseAll(ifs, Options{IfName: "ens,ib"})
	require.Error(t, err)
}

func FuzzChoose(f *testing.F) {
	f.Add("^=eth,lo", "eth0,lo,ib1", 4)
	f.Add("=", "", 0)
	f.Fuzz(func(t *testing.T, pattern, names string, family int) {
		var ifs []iface
		for n := range strings.SplitSeq(names, ",") {
			ifs = append(ifs, iface{n, []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8"), netip.MustParsePrefix("fe80::1/64")}})
		}
		p, err := choose(ifs, Options{IfName: pattern, Family: family})
		all, failed := chooseAll(ifs, Options{IfName: pattern, Family: family})
		require.Equal(t, err, failed)
		if err != nil {
			return
		}
		require.NotEmpty(t, all)
		require.True(t, parseIfName(pattern).match(p.Iface))
		require.True(t, slices.ContainsFunc(ifs, func(i iface) bool { return i.Name == p.Iface }))
		require.True(t, p.Addr.IsValid())
	})
}

func TestInterfacesOfThisMachine(t *testing.T) {
	ifs, err := interfaces()
	require.NoError(t, err)
	_, err = choose(ifs, Options{})
	require.NoError(t, err)
}
