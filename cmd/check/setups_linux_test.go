package check

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
)

// A setup is hosts as people have them, in network namespaces.
type setup struct {
	name   string
	what   string // in a few words, for the table
	hosts  int
	each   string   // commands on each host; HOST is its number
	fabric string   // commands for each port of the fabric
	one    string   // commands on host c alone, or on the last
	at     string   // where the ranks meet, if not at 10.77.0.1
	stages string   // if not network and collectives
	busy   bool     // other processes want the cores
	named  []string // what is wrong, by code and subject; nothing in a set-up that is well
	quick  bool     // a case that short runs have too
}

var setups = []setup{
	{name: "pods of one machine", what: "a network namespace each, one kernel, no default route", hosts: 4, quick: true},
	{name: "default route", what: "the same, with a default route", hosts: 3, each: "ip route add default via 10.77.0.254"},
	{name: "podman", what: "a bridge podman0 with 10.88.0.1/16 on each", hosts: 4, each: "ip link add podman0 type bridge; ip addr add 10.88.0.1/16 dev podman0; ip link set podman0 up", quick: true},
	{name: "docker", what: "docker0 with 172.17.0.1/16 and a network of compose on each", hosts: 3,
		each: "ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up; ip link add br-5e1 type bridge; ip addr add 172.18.0.1/16 dev br-5e1; ip link set br-5e1 up"},
	{name: "other container networks", what: "lxcbr0, nerdctl0 and weave, with the same addresses on each", hosts: 3,
		each: "ip link add lxcbr0 type bridge; ip addr add 10.0.3.1/24 dev lxcbr0; ip link set lxcbr0 up; ip link add nerdctl0 type bridge; ip addr add 10.4.0.1/24 dev nerdctl0; ip link set nerdctl0 up; ip link add weave type bridge; ip addr add 10.32.0.1/12 dev weave; ip link set weave up"},
	{name: "networks of each host's pods", what: "a bridge with 10.42.N.1/24 that only host N reaches", hosts: 3,
		each: "ip link add pods0 type bridge; ip addr add 10.42.HOST.1/24 dev pods0; ip link set pods0 up"},
	{name: "BlueField cards", what: "tmfifo_net0 with 192.168.100.2/30 on each", hosts: 3, each: "ip link add tmfifo_net0 type bridge; ip addr add 192.168.100.2/30 dev tmfifo_net0; ip link set tmfifo_net0 up"},
	{name: "a VPN", what: "an interface of one subnet whose members do not reach each other", hosts: 3,
		each: "ip link add wg0 type bridge; ip addr add 10.8.0.HOST/24 dev wg0; ip link set wg0 up"},
	{name: "a VPN, two hosts", what: "the same", hosts: 2, each: "ip link add wg0 type bridge; ip addr add 10.8.0.HOST/24 dev wg0; ip link set wg0 up"},
	{name: "IPv6 only", what: "no IPv4 address", hosts: 3, each: "ip addr flush dev eth0; ip addr add fd77::HOST/64 dev eth0 nodad", at: "[fd77::1]:29717"},
	{name: "two networks", what: "two interfaces, each in a subnet of its own", hosts: 3,
		each: "ip link add link eth0 name eth1 type macvlan mode bridge; ip addr add 10.78.0.HOST/24 dev eth1; ip link set eth1 up"},
	{name: "a second network on one host", what: "one host has an interface that the others lack", hosts: 3, one: "ip link add eth1 type bridge; ip addr add 192.168.7.3/24 dev eth1; ip link set eth1 up"},
	{name: "VLANs", what: "a tagged VLAN beside the plain network", hosts: 3, each: "ip link add link eth0 name eth0.5 type vlan id 5; ip addr add 10.79.0.HOST/24 dev eth0.5; ip link set eth0.5 up"},
	{name: "bonds", what: "the address is that of a bond", hosts: 3,
		each: "ip addr flush dev eth0; ip link set eth0 down; ip link add bond0 type bond mode active-backup; ip link set eth0 master bond0; ip addr add 10.77.0.HOST/24 dev bond0; ip link set bond0 up"},
	{name: "routed", what: "each host in a subnet of its own, a router between them", hosts: 3, at: "10.81.0.2:29717",
		each:   "ip addr flush dev eth0; ip addr add 10.8HOST.0.2/24 dev eth0; ip route add default via 10.8HOST.0.1",
		fabric: "ip link set portPORT nomaster; ip addr add 10.8HOST.0.1/24 dev portPORT; sysctl -qw net.ipv4.ip_forward=1"},
	{name: "jumbo frames", what: "an MTU of 9000 on all", hosts: 3, each: "ip link set eth0 mtu 9000", fabric: "ip link set portPORT mtu 9000", stages: "host network collectives"},
	{name: "one host", what: "nothing to compare with", hosts: 1},
	{name: "two hosts", what: "no third to compare with", hosts: 2},
	{name: "a busy machine", what: "four processes that want the cores", hosts: 3, busy: true},

	{name: "a pair without a way", what: "one host has no route to another", hosts: 4, one: "ip route add blackhole 10.77.0.2/32", named: []string{"no-link host b, eth0 to host c, eth0"}, stages: "network"},
	{name: "the same beside podman", what: "podman0 with 10.88.0.1/16; one host has no route to another", hosts: 4, each: "ip link add podman0 type bridge; ip addr add 10.88.0.1/16 dev podman0; ip link set podman0 up",
		one: "ip route add blackhole 10.77.0.2/32", named: []string{"no-link host b, eth0 to host c, eth0"}, stages: "network"},
	{name: "a second network that one host has lost", what: "a second interface; one host has no route for it, and the others' carries", hosts: 4,
		each: "ip link add link eth0 name eth1 type macvlan mode bridge; ip addr add 10.78.0.HOST/24 dev eth1; ip link set eth1 up", one: "ip route add blackhole 10.78.0.0/25",
		named: []string{"no-link host c"}, stages: "network"},
	{name: "a slow host", what: "one that sends 20 Mbit/s", hosts: 4, one: "tc qdisc add dev eth0 root tbf rate 20mbit burst 16kb latency 50ms", named: []string{"slow-link host c"}, stages: "network"},
	{name: "another MTU", what: "1400 on one host", hosts: 4, one: "ip link set eth0 mtu 1400", named: []string{"mtu-differs host c, eth0"}, stages: "host"},
}

// Set-ups that are well raise no alarm, and of those that are not what is wrong is named, and nothing else.
func TestSetups(t *testing.T) {
	tier.Long(t)
	for i, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			if !s.quick && (!tier.Full() || tier.Race && i%2 == 1) {
				t.Skip("RINGO_TEST=full has it, without the race detector")
			}
			s.run(t)
		})
	}
}

// The table in docs is that of the set-ups.
func TestSetupsTable(t *testing.T) {
	const file = "../../docs/check.md"
	var b strings.Builder
	b.WriteString("# What `ringo check` takes for healthy\n\n`RINGO_TEST=full go test ./cmd/check -run TestSetups` builds these set-ups of network namespaces (root, `ip`, `tc`) and checks them; a kernel without\n" +
		"VLANs or bonds leaves those out. `go test ./cmd/check -run TestSetupsTable -rewrite` writes this table.\n\n| set-up | hosts | each is, or has | alarms |\n|---|--:|---|---|\n")
	for _, s := range setups {
		alarms := "none"
		if len(s.named) > 0 {
			alarms = strings.Join(s.named, ", ")
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", s.name, s.hosts, s.what, alarms)
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(text))
}

func (s *setup) run(t *testing.T) {
	l := newLAN(t, s.hosts)
	for h, ns := range l.hosts {
		fill := strings.NewReplacer("HOST", fmt.Sprint(h+1), "PORT", fmt.Sprint(h))
		s.has(t, commandsIn(l.fabric, lines(fill.Replace(s.fabric))...))
		s.has(t, commandsIn(ns, lines(fill.Replace(s.each))...))
	}
	s.has(t, commandsIn(l.hosts[min(2, s.hosts-1)], lines(s.one)...))
	if s.busy {
		var stop atomic.Bool
		defer stop.Store(true)
		for range 4 {
			go func() {
				for !stop.Load() {
					runtime.Gosched()
				}
			}()
		}
	}
	at, stages := s.at, s.stages
	if at == "" {
		at = "10.77.0.1:29717"
	}
	if stages == "" {
		stages = "network collectives"
	}
	r, said := l.check(at, stages)
	var named []string
	for _, f := range r.Findings {
		if f.Severity != well && !slices.Contains(ofThisMachine, f.Code) {
			named = append(named, f.Code+" "+f.Subject.String())
		}
	}
	require.Equal(t, s.named, named, said)
}

// ofThisMachine are codes of findings about the machine that has the namespaces.
var ofThisMachine = []string{"shm-full", "low-nofile", "low-nproc", "no-memory", "cpu-capped", "memory-errors", "memory-repairs"}

// has skips a set-up that the kernel lacks the modules for.
func (s *setup) has(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Skip(err)
	}
}

func lines(commands string) (list []string) {
	for c := range strings.SplitSeq(commands, ";") {
		if c = strings.TrimSpace(c); c != "" {
			list = append(list, c)
		}
	}
	return list
}
