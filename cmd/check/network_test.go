package check

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNetworkFaults: of four hosts, 1 to 4 or a to d, the link or host that is ill is named, and nothing else. Slow,
// late and lossy ones are in TestLab.
func TestNetworkFaults(t *testing.T) {
	// ill is healthy, with what some ways have in place of it.
	ill := func(on func(a, b byte) bool, change func(l *fakeLink)) func(a, b byte) fakeLink {
		return func(a, b byte) fakeLink {
			l := healthy(a, b)
			if on(a, b) {
				change(&l)
			}
			return l
		}
	}
	way := func(x, y byte) func(a, b byte) bool { return func(a, b byte) bool { return a == x && b == y } }
	host := func(x byte) func(a, b byte) bool { return func(a, b byte) bool { return a == x || b == x } }
	both := func(x, y byte) func(a, b byte) bool {
		return func(a, b byte) bool { return min(a, b) == x && max(a, b) == y }
	}
	flips, gone, hangs := func(l *fakeLink) { l.flip = true }, func(l *fakeLink) { l.gone = true },
		func(l *fakeLink) { l.cut = 300_000 }
	for _, c := range []struct {
		name string
		link func(a, b byte) fakeLink
		want string // code and subject of the finding, but for interfaces
		says string
	}{
		{"a flipped bit", ill(way(4, 1), flips), "corrupt-link host d to host a", "blocks of 128 KiB came wrong"},
		{"a host that flips bits", ill(host(2), flips), "corrupt-link host b", "it exchanges wrong data with 3 other hosts"},
		{"no way", ill(both(3, 4), gone), "no-link host c to host d", "no route to host"},
		{"a host that is cut off", ill(host(4), gone), "no-link host d", "it has no connection with 3 other hosts"},
		{"a link that hangs", ill(both(2, 3), hangs), "no-stream host b to host c",
			"small messages pass, and a stream does not"},
		{"a link that hangs one way", ill(way(3, 2), hangs), "no-stream host c to host b",
			"small messages pass, and a stream does not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, errs := runAll(t, fakeCluster(4, c.link), config{Stages: []stage{networkStage()}})
				time.Sleep(time.Minute) // until goroutines left behind have ended
				require.Equal(t, make([]error, 4), errs)
				require.Equal(t, c.want, strings.ReplaceAll(strings.Join(codes(r), ", "), ", eth0", ""), "%v", r.Findings)
				require.Contains(t, r.Findings[0].Text, c.says)
				require.Len(t, r.Maps(), 2)
				require.Less(t, r.Took, 12.5)
			})
		})
	}
}

// Rails may differ; a host is compared with the others on the same one, whatever it calls its interfaces.
func TestRailsOfDifferentSpeed(t *testing.T) {
	ways := func(slow float64) *report {
		r := &report{}
		hosts := []string{"a", "b", "c", "d"}
		for i, h := range hosts {
			r.Hosts = append(r.Hosts, hostReport{Name: h})
			for k, o := range hosts {
				for _, rail := range []struct {
					name  string
					speed float64
				}{{"eth0", 20}, {"eth1", 1}} {
					from, to, speed := component{h, rail.name}, component{o, rail.name}, rail.speed
					if i == 2 { // host c has other names
						from.Part += "np0"
					}
					if k == 2 {
						to.Part += "np0"
					}
					if i == 2 && rail.name == "eth1" {
						speed *= slow
					}
					if i != k {
						r.Measurements = append(r.Measurements, measurement{Stage: "network", Subject: pairOf(from, to),
							Quantity: "bandwidth", Value: speed, Unit: "GB/s"})
					}
				}
			}
		}
		return r
	}
	require.Empty(t, judgeNetwork(ways(1), &config{}))
	found := judgeNetwork(ways(0.05), &config{})
	require.Len(t, found, 1)
	require.Equal(t, "slow-link host c", found[0].Code+" "+found[0].Subject.String())
	require.Contains(t, found[0].Text, "0.05 GB/s, the others 1.00")
}

// withRails gives hosts a second interface each.
func withRails(jobs []*job, change func(i int, h *fakeHost)) []*job {
	for i, j := range jobs {
		h := newFakeHost(i)
		h.addresses = append(h.addresses,
			address{"eth1", net.IPNet{IP: net.IPv4(10, 1, 0, byte(i+1)), Mask: net.CIDRMask(24, 32)}, 0,
				fmt.Sprint("second ", i)})
		change(i, h)
		j.SetMachine(h.machine())
		for _, o := range jobs {
			o.members[i].Addresses = h.addresses
		}
	}
	return jobs
}

// TestRailsThatLackAHost: if a host is missing from a network of the others, the cause is named: an interface that
// nobody reaches, or an address that another host has. Without other signs of a network nothing is found.
func TestRailsThatLackAHost(t *testing.T) {
	on := func(which int, change func(h *fakeHost)) func(int, *fakeHost) {
		return func(i int, h *fakeHost) {
			if i == which {
				change(h)
			}
		}
	}
	idle := func(h *fakeHost) {
		h.addresses, h.idle = h.addresses[:1], map[string]string{"eth1": "it is up and has no address"}
	}
	everywhere := func(address string) func(int, *fakeHost) {
		return func(_ int, h *fakeHost) { h.addresses[1].Net.IP = net.ParseIP(address) }
	}
	for _, c := range []struct {
		name   string
		change func(i int, h *fakeHost)
		want   []string
		says   string
	}{
		{"nothing", on(2, func(*fakeHost) {}), nil, ""},
		{"an idle interface", on(2, idle), []string{"idle-interface host c, eth1"},
			"it is up and has no address, and data pass over eth1 between 3 of 4 hosts"},
		{"idle on most", func(i int, h *fakeHost) {
			if i > 1 {
				idle(h)
			}
		}, nil, ""},
		{"joined by another", on(2, func(h *fakeHost) {
			h.addresses[1].Interface, h.idle = "eth2", map[string]string{"eth1": "it is down"}
		}), nil, ""},
		{"an address of two", on(2, func(h *fakeHost) { h.addresses[1].Net.IP = net.IPv4(10, 1, 0, 2) }),
			[]string{"duplicate-address host b, eth1 to host c, eth1"}, "address 10.1.0.2 is on hosts b and c"},
		{"an interface of two",
			on(2, func(h *fakeHost) { h.addresses[1].Net.IP, h.addresses[1].MAC = net.IPv4(10, 1, 0, 2), "second 1" }),
			[]string{"shared-address the job"}, "several hosts have the address 10.1.0.2"},
		{"a bridge of each", everywhere("10.88.0.1"), []string{"shared-address the job"},
			"several hosts have the address 10.88.0.1"},
		{"bridges and another's card", func(i int, h *fakeHost) {
			if h.addresses[1].Net.IP = net.ParseIP("10.88.0.1"); i == 0 {
				h.addresses[1].Net.IP, h.addresses[1].Interface = net.ParseIP("10.88.0.9"), "ens1"
			}
		}, []string{"shared-address the job"}, "several hosts have"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, errs := runAll(t, withRails(fakeCluster(4, healthy), c.change), config{Stages: []stage{networkStage()}})
				time.Sleep(time.Minute) // for what is still under way
				require.Equal(t, make([]error, 4), errs)
				require.Equal(t, c.want, codes(r), "%v", r.Findings)
				if c.says != "" {
					require.Contains(t, r.Findings[0].Text, c.says)
				}
			})
		})
	}
	// A card that is down has been named by the stage of hosts.
	r := &report{Hosts: []hostReport{{Name: "a"}, {Name: "b"}, {Name: "c"}}, Measurements: []measurement{
		{Stage: "network", Subject: pairOf(component{"a", "eth1"}, component{"b", "eth1"}), Quantity: "bandwidth", Value: 1},
		{Stage: "network", Subject: of("c", "eth1"), Quantity: idleInterface, Text: "it is down"},
	}}
	require.Len(t, judgeNetwork(r, &config{}), 1)
	r.Measurements = append(r.Measurements, measurement{Stage: "host", Subject: of("c", "eth1"), Quantity: "state",
		Text: "down"})
	require.Empty(t, judgeNetwork(r, &config{}))
}

// This machine's interfaces are reached, or idle with a reason, or virtual.
func TestIdleInterfaces(t *testing.T) {
	idle := idleInterfaces()
	list, err := addresses()
	require.NoError(t, err)
	for _, a := range list {
		require.NotContains(t, idle, a.Interface)
	}
	ifs, err := net.Interfaces()
	require.NoError(t, err)
	for _, f := range ifs {
		if why, ok := idle[f.Name]; ok {
			require.Zero(t, f.Flags&net.FlagLoopback)
			require.Equal(t, f.Flags&net.FlagUp == 0, why == "it is down")
		}
	}
}

// Interfaces of one subnet are a rail, whatever their names and order, also when their addresses have travelled as
// text; where no two are, those of one name.
func TestRailsOf(t *testing.T) {
	ports := func(list ...string) (ports []port) {
		for _, s := range list {
			name, at, _ := strings.Cut(s, " ")
			ip, n, err := net.ParseCIDR(at)
			require.NoError(t, err)
			bits, _ := n.Mask.Size()
			ports = append(ports, port{Interface: name, IP: ip, Mask: bits})
		}
		text, err := json.Marshal(ports)
		require.NoError(t, err)
		var read []port
		require.NoError(t, json.Unmarshal(text, &read))
		return read
	}
	for _, c := range []struct {
		from, to []port
		want     string
	}{
		{ports("eth0 10.0.0.1/24", "eth1 10.1.0.1/24"), ports("ens1 10.1.0.2/24", "ens0 10.0.0.2/24"), "eth0-ens0 eth1-ens1"},
		{ports("eth0 10.0.0.1/24", "eth1 10.0.0.11/24"), ports("eth0 10.0.0.2/24", "eth1 10.0.0.12/24"),
			"eth0-eth0 eth1-eth1"},
		{ports("eth0 10.0.0.1/24", "pods 10.42.1.1/24"), ports("eth0 10.0.0.2/24", "pods 10.42.2.1/24"), "eth0-eth0"},
		{ports("eth0 fd77::1/64", "eth1 10.1.0.1/24"), ports("eth1 fd77::2/64"), "eth0-eth1"},
		{ports("eth0 10.0.0.1/32", "eth1 10.1.0.1/32"), ports("eth1 10.1.0.2/32", "eth0 10.0.0.2/32"), "eth0-eth0 eth1-eth1"},
		{ports("eth0 10.0.0.1/24"), ports("eth0 fd77::2/64", "x 10.3.0.1/24"), "eth0-eth0"},
		{ports("a 10.0.0.1/24", "b 10.1.0.1/24"), ports("c 10.2.0.1/24"), "a-c"},
		{nil, ports("c 10.2.0.1/24"), ""},
	} {
		var rails []string
		for _, r := range railsOf(c.from, c.to) {
			rails = append(rails, r.from.Interface+"-"+r.to.Interface)
		}
		require.Equal(t, c.want, strings.Join(rails, " "))
	}
	var many []port
	for i := range 20 {
		many = append(many, ports(fmt.Sprintf("eth%d 10.0.0.%d/24", i, i))...)
	}
	require.Len(t, railsOf(many, many), maxRails)
}

// Each pair of hosts meets once, pairs of a round have no host in common, and the time of 1,000
// hosts is bounded.
func TestTournament(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 5, 8, 15, 16, 127, 1000, 1001} {
		p := planTournament(n, 8*time.Minute)
		met := make([]bool, n*n)
		pairs := 0
		for round := range p.Rounds {
			for a := range n {
				b := p.Peer(a, round)
				switch {
				case b < 0 && n%2 == 1:
				case b < 0 || a == b || p.Peer(b, round) != a || a < b && met[a*n+b]:
					t.Fatalf("%d hosts, round %d: host %d meets %d", n, round, a, b)
				case a < b:
					met[a*n+b] = true
					pairs++
				}
			}
		}
		require.Equal(t, max(0, n*(n-1)/2), pairs)
		require.LessOrEqual(t, time.Duration(p.Rounds)*p.Slot, 8*time.Minute)
	}
	p := planTournament(1000, networkShare(10*time.Minute))
	require.LessOrEqual(t, time.Duration(p.Rounds)*p.Slot, 10*time.Minute)
	in := phasesOf(p.Slot, 1)
	require.Less(t, in.ping+in.burst+2*in.stream, p.Slot, "what a pair does does not fit into its slot")
	require.GreaterOrEqual(t, in.stream, 50*time.Millisecond)
}

// TestTwoHostsJudged: a slow single stream is no finding if several streams are quick, nor is the speed that a virtual
// interface claims.
func TestTwoHostsJudged(t *testing.T) {
	there := pairOf(component{"a", "eth0"}, component{"b", "eth0"})
	back := pairOf(there.To, there.component)
	for _, c := range []struct {
		name                string
		one, many, other, s float64
		want                []string
	}{
		{"fast", 11, 0, 11, 12.5, nil},
		{"much faster than TCP is", 2, 0, 2, 50, nil},
		{"one stream", 1, 0, 11, 0, []string{"slow-stream host a, eth0 to host b, eth0"}},
		{"several are well", 1, 9, 11, 12.5, nil},
		{"several are slow", 1, 2, 11, 0, []string{"slow-link host a, eth0 to host b, eth0"}},
		{"a third is well", 4, 0, 11, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &report{Hosts: []hostReport{{Name: "a"}, {Name: "b"}}}
			add := func(s subject, q string, v float64) {
				if v > 0 {
					r.Measurements = append(r.Measurements, measurement{Stage: "network", Subject: s, Quantity: q, Value: v,
						Unit: "GB/s"})
				}
			}
			add(there, "bandwidth", c.one)
			add(there, manyStreams, c.many)
			add(back, "bandwidth", c.other)
			add(there, "interface", c.s)
			r.Findings = judgeNetwork(r, &config{})
			require.Equal(t, c.want, codes(r))
		})
	}
	h := newFakeHost(0)
	require.Equal(t, 25., h.machine().speed("eth0"))
	h.files["sys/class/net/veth1/speed"] = "10000\n"
	require.Zero(t, h.machine().speed("veth1"))
	require.Zero(t, h.machine().speed("lo"))
}

// TestAgreed: sweeps show a gap only if two or more do, and none shows another.
func TestAgreed(t *testing.T) {
	hole, other, none := gap{1400, 1420}, gap{576, 800}, gap{}
	for _, c := range []struct {
		results []gap
		want    gap
	}{
		{[]gap{hole, hole, hole}, hole},
		{[]gap{none, hole, hole}, hole},
		{[]gap{none, none, hole}, none},
		{[]gap{hole, other, hole}, none},
		{[]gap{{Passes: 1500}, {Passes: 1500}, none}, gap{Passes: 1500}},
		{[]gap{{Passes: 1500}, hole, hole}, none},
		{[]gap{none, none, none}, none},
	} {
		require.Equal(t, c.want, agreed(c.results), "%v", c.results)
	}
}

// TestGaps finds between which sizes a direction drops packets, and finds nothing where packets are lost by chance, or
// where one of full size comes late.
func TestGaps(t *testing.T) {
	hole := func(longest int) func(a, b byte) fakeLink {
		return func(a, b byte) fakeLink {
			l := healthy(a, b)
			if a == 1 {
				l.longest = longest
			}
			return l
		}
	}
	lossy := func(a, b byte) fakeLink { l := healthy(a, b); l.loss = 0.3; return l }
	for _, c := range []struct {
		name string
		link func(a, b byte) fakeLink
		want [2]gap
		ill  bool
	}{
		{"none", healthy, [2]gap{}, false},
		{"a usual MTU", hole(1400), [2]gap{{1400, 1420}, {Passes: 1500}}, true},
		{"another one", hole(1479), [2]gap{{1450, 1480}, {Passes: 1500}}, true},
		{"a small one", hole(576), [2]gap{{576, 800}, {Passes: 1500}}, true},
		{"loss", lossy, [2]gap{}, false},
		{"a long way", func(a, b byte) fakeLink { l := healthy(a, b); l.delay = time.Second / 4; return l }, [2]gap{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := newFakeNet(c.link)
				defer fake.close()
				fake.owns(1, net.IPv4(10, 0, 0, 1))
				ln := fake.listen(2, net.IPv4(10, 0, 0, 2))
				go func() {
					for {
						far, err := ln.Accept()
						if err != nil {
							return
						}
						go func() { _ = answerLink(far, phases{}) }()
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				dial := func(ctx context.Context) (net.Conn, error) {
					return fake.dial(ctx, 1, "10.0.0.1", ln.Addr().String(), fakePacket)
				}
				conn, err := dial(ctx)
				require.NoError(t, err)
				defer bounded(ctx, conn)()
				found, err := gaps(ctx, conn, dial)
				if c.ill {
					require.Equal(t, errGap, err)
				} else {
					require.NotEqual(t, errGap, err)
				}
				require.Equal(t, c.want, found)
			})
		})
	}
}
