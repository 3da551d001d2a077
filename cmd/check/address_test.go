package check

import (
	"encoding/binary"
	"fmt"
	"net"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// at is a host's address on an interface.
func at(t *testing.T, iface, cidr, mac string) address {
	ip, n, err := net.ParseCIDR(cidr)
	require.NoError(t, err)
	return address{Interface: iface, Net: net.IPNet{IP: ip, Mask: n.Mask}, MAC: mac}
}

// TestDuplicates names an address that two hosts have by mistake, and none that hosts have in common on purpose.
func TestDuplicates(t *testing.T) {
	host := func(i int, more ...address) []address {
		n := string(rune('1' + i))
		return append([]address{at(t, "eth0", "10.0.0."+n+"/24", "m"+n)}, more...)
	}
	for _, c := range []struct {
		name  string
		hosts [][]address
		want  []string
	}{
		{"none", [][]address{host(0), host(1), host(2)}, nil},
		{"beside its own", [][]address{host(0), host(1), host(2, at(t, "eth0", "10.0.0.2/24", "m3"))},
			[]string{"duplicate-address host b, eth0 to host c, eth0"}},
		{"in place of its own", [][]address{host(0), host(1), {at(t, "eth0", "10.0.0.2/24", "m3")}},
			[]string{"duplicate-address host b, eth0 to host c, eth0"}},
		{"of two hosts", [][]address{host(0), host(1, at(t, "eth0", "10.0.0.1/24", "m2"))},
			[]string{"duplicate-address host a, eth0 to host b, eth0"}},
		{"a card that moved", [][]address{host(0), host(1), host(2, at(t, "eth0", "10.0.0.2/24", "m2"))}, nil},
		{"bridges to containers", [][]address{host(0, at(t, "podman0", "10.88.0.1/16", "p1")),
			host(1, at(t, "podman0", "10.88.0.1/16", "p2")), host(2)}, nil},
		{"an address of a service", [][]address{host(0, at(t, "dummy0", "10.0.0.99/32", "d1")),
			host(1, at(t, "dummy0", "10.0.0.99/32", "d2")), host(2)}, nil},
		{"one that all have", [][]address{host(0, at(t, "eth0", "10.0.0.99/24", "m1")),
			host(1, at(t, "eth0", "10.0.0.99/24", "m2")), host(2, at(t, "eth0", "10.0.0.99/24", "m3"))}, nil},
	} {
		j := local([]string{"a", "b", "c"}[:len(c.hosts)]...)[0]
		for i, list := range c.hosts {
			j.members[i].Addresses = list
		}
		r := &report{}
		r.tell(j)
		r.Findings = duplicates(r)
		require.Equal(t, c.want, codes(r), c.name)
	}
}

// TestStrangers: a card that answers for an address of a host beside the host's own is noted, unless it stands in for
// many, as a router does, or the host's own was never seen.
func TestStrangers(t *testing.T) {
	members := []member{{MACs: []string{"02:00:00:00:00:01"}, Addresses: []address{at(t, "eth0", "10.0.0.1/24", "")}},
		{MACs: []string{"02:00:00:00:00:02", "02:00:00:00:00:12"}, Addresses: []address{at(t, "eth0", "10.0.0.2/24", "")}},
		{MACs: []string{"02:00:00:00:00:03"}, Addresses: []address{at(t, "eth0", "10.0.0.3/24", "")}}}
	gateway := fmt.Sprintf("%08X", binary.NativeEndian.Uint32([]byte{10, 0, 0, 254}))
	const head = "IP address       HW type     Flags       HW address            Mask     Device\n"
	line := func(ip, mac string) string { return ip + " 0x1 0x2 " + mac + " * eth0\n" }
	for _, c := range []struct {
		name   string
		tables []string
		want   map[string][]string
	}{
		{"a router", []string{line("10.0.0.2", "02:00:00:00:00:02"), line("10.0.0.254", "02:00:00:00:00:fe") +
			line("10.0.0.2", "02:00:00:00:00:fe")}, map[string][]string{}},
		{"well", []string{line("10.0.0.2", "02:00:00:00:00:02"), line("10.0.0.2", "02:00:00:00:00:12")},
			map[string][]string{}},
		{"another card", []string{line("10.0.0.2", "02:00:00:00:00:02"), line("10.0.0.2", "02:00:00:00:00:09")},
			map[string][]string{"10.0.0.2": {"02:00:00:00:00:09"}}},
		{"a router for all", []string{line("10.0.0.2", "02:00:00:00:00:02"), line("10.0.0.1", "02:00:00:00:00:09") +
			line("10.0.0.2", "02:00:00:00:00:09") + line("10.0.0.3", "02:00:00:00:00:09")}, map[string][]string{}},
		{"only another card", []string{line("10.0.0.2", "02:00:00:00:00:09")}, map[string][]string{}},
		{"not yet known", []string{line("10.0.0.2", "02:00:00:00:00:02"), line("10.0.0.2", "00:00:00:00:00:00")},
			map[string][]string{}},
	} {
		n := &neighbours{seen: map[string]map[string]bool{}}
		for _, table := range c.tables {
			n.look(&machine{FS: fstest.MapFS{"proc/net/arp": {Data: []byte(head + table)},
				"proc/net/route": {Data: []byte("Iface Destination Gateway\neth0 00000000 " + gateway + "\n")}}})
		}
		require.Equal(t, c.want, n.strangers(members), c.name)
	}
}

// TestExcuse: where two hosts have one address, neither is blamed for what it does not receive, nor is the one that has
// not come, which may have had the address first.
func TestExcuse(t *testing.T) {
	r := &report{Hosts: []hostReport{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Measurements: []measurement{
			{Stage: rendezvous, Subject: of("c", "eth0"), Quantity: "address", Text: "10.0.0.3/24 m3"},
			{Stage: "host", Subject: of("a", ""), Quantity: "stranger", Text: "10.0.0.3 m2"}},
		Findings: []finding{{Severity: broken, Code: "absent", Subject: of("", "rank 1"), Text: "did not come"},
			{Severity: broken, Code: "cut-off", Subject: of("c", ""), Text: "x"},
			{Severity: broken, Code: "died", Subject: of("a", "rank 0"), Text: "y"},
			{Severity: broken, Code: "no-link", Subject: pairOf(component{"a", "eth0"}, component{"c", "eth0"})},
			{Severity: degraded, Code: "slow-link", Subject: pairOf(component{"a", "eth0"}, component{"b", "eth0"})}}}
	r.Findings = append(r.Findings, judgeHost(r, nil)...)
	r.excuse()
	require.Equal(t, []string{"absent rank 1", "cut-off host c", "died host a, rank 0",
		"slow-link host a, eth0 to host b, eth0", "duplicate-address host c, eth0"}, codes(r))
	var severities []severity
	for _, f := range r.Findings {
		severities = append(severities, f.Severity)
	}
	require.Equal(t, []severity{unjudged, unjudged, broken, degraded, broken}, severities)
	r.Measurements = append(r.Measurements, measurement{Stage: rendezvous, Subject: of("b", "eth0"), Quantity: "address",
		Text: "10.0.0.2/24 m2b"}, measurement{Stage: "host", Subject: of("c", ""), Quantity: "stranger", Text: "10.0.0.2 m2"})
	require.Empty(t, judgeHost(r, nil), "a card that answers for the addresses of two hosts stands in for both")
	require.Contains(t, r.Findings[4].Text, "card m2 answers for it too, of a host that is none of those that have come, "+
		"such as that of rank 1; which of the two has it by mistake cannot be known")
}

// TestExcuseLosses: where much is lost on the way to the first host, what did not come is no proof against a rank.
func TestExcuseLosses(t *testing.T) {
	a, b, c := component{Host: "a"}, component{Host: "b"}, component{Host: "c"}
	for _, loss := range []struct {
		of      subject
		weight  float64
		excused bool // stopped rank of host c
	}{
		{subject{component: a}, 10.3, true}, {subject{component: a}, 10.01, false}, {subject{component: b}, 10.3, false},
		{subject{component: c}, 10.3, true}, {pairOf(c, a), 10.3, true}, {pairOf(a, b), 10.3, false},
		{pairOf(b, c), 10.3, false}, {subject{}, 10.3, true},
	} {
		r := &report{Hosts: []hostReport{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Findings: []finding{
			{Severity: broken, Code: "stopped", Stage: "host", Subject: of("c", "rank 2"), Text: "x"},
			{Severity: broken, Code: "died", Stage: "host", Subject: of("c", "rank 3"), Text: "x"},
			{Severity: degraded, Code: "loss", Subject: loss.of, Weight: loss.weight}}}
		r.excuseLosses()
		require.Equal(t, loss.excused, r.Findings[0].Severity == unjudged, "%v", loss)
		require.Equal(t, broken, r.Findings[1].Severity)
	}
}
