package check

import "time"

// What ends a rank that does not come, or not in time.
const (
	soon    = "export RINGO_TEST_JOIN=3s; "
	quickly = "export RINGO_TEST_LIMIT=1500ms; "
)

var illSetups = []setup{
	{name: "a pair without a way", what: "c has no route to b", hosts: 4, one: "ip route add blackhole 10.77.0.2/32", named: []string{"no-link host b, eth0 to host c, eth0"}},
	{name: "the same beside podman", what: "podman0 with 10.88.0.1/16; c has no route to b", hosts: 4, each: bridge("podman0", "10.88.0.1/16"),
		one: "ip route add blackhole 10.77.0.2/32", named: []string{"no-link host b, eth0 to host c, eth0"}},
	{name: "the same of eight hosts", what: "c has no route to b", hosts: 8, one: "ip route add blackhole 10.77.0.2/32", named: []string{"no-link host b, eth0 to host c, eth0"}},
	{name: "the same over IPv6", what: "c has no route to b", hosts: 3, at: "[fd77::1]:29717", each: "ip addr flush dev eth0; ip addr add fd77::HOST/64 dev eth0 nodad",
		one: "ip route add blackhole fd77::2/128", named: []string{"no-link host b, eth0 to host c, eth0"}},
	{name: "a pair blocked one way", what: "a switch drops what b sends to c", hosts: 4, fabric: switches("ip saddr 10.77.0.2 ip daddr 10.77.0.3 drop"), named: []string{"no-link host b, eth0 to host c, eth0"}},
	{name: "a pair blocked both ways", what: "a switch drops what b and d send to each other", hosts: 4,
		fabric: switches("ip saddr 10.77.0.2 ip daddr 10.77.0.4 drop") + switches("ip saddr 10.77.0.4 ip daddr 10.77.0.2 drop"), named: []string{"no-link host b, eth0 to host d, eth0"}},
	{name: "a firewall that resets", what: "c refuses what comes from b", hosts: 3, one: firewall("ip saddr 10.77.0.2 reject with tcp reset"), named: []string{"no-link host b, eth0 to host c, eth0"}},
	{name: "a firewall that accepts, then drops", what: "of what b sends to c, only the first packet of a connection passes", hosts: 4,
		fabric: switches("ip saddr 10.77.0.2 ip daddr 10.77.0.3 tcp flags & syn == 0 drop"), named: []string{"no-link host b, eth0 to host c, eth0"}},
	{name: "a host that takes no connections", what: "c drops what is new", hosts: 4, one: firewall("ct state new ip saddr 10.77.0.0/24 drop"), named: []string{"no-link host c"}},
	{name: "a port that is blocked", what: "c does not reach the port where the ranks meet", hosts: 4, before: soon, fabric: switches("ip saddr 10.77.0.3 tcp dport 29717 drop"), named: []string{"absent rank 2"}},
	{name: "a wrong netmask", what: "c takes d for a host of another subnet", hosts: 4, one: "ip addr flush dev eth0; ip addr add 10.77.0.3/30 dev eth0", named: []string{"no-link host c, eth0 to host d, eth0"}},
	{name: "a wrong gateway", what: "each in a subnet of its own; c's gateway is none", hosts: 3, at: "10.81.0.2:29717", before: soon,
		each:  "ip addr flush dev eth0; ip addr add 10.8HOST.0.2/24 dev eth0; ip route add default via 10.8HOST.0.1",
		port:  "ip link set PORT nomaster; ip addr add 10.8HOST.0.1/24 dev PORT; sysctl -qw net.ipv4.ip_forward=1",
		one:   "ip route replace default via 10.83.0.9",
		named: []string{"absent rank 2"}},
	{name: "a router that lacks a route", what: "what b sends to c is not passed on", hosts: 3, at: "10.81.0.2:29717",
		each:   "ip addr flush dev eth0; ip addr add 10.8HOST.0.2/24 dev eth0; ip route add default via 10.8HOST.0.1",
		port:   "ip link set PORT nomaster; ip addr add 10.8HOST.0.1/24 dev PORT; sysctl -qw net.ipv4.ip_forward=1",
		fabric: "ip rule add from 10.82.0.2 to 10.83.0.2 unreachable", named: []string{"no-link host b, eth0 to host c, eth0"}},
	{name: "another family", what: "c has IPv6 alone", hosts: 3, before: soon, one: "ip addr flush dev eth0; ip addr add fd77::3/64 dev eth0 nodad", named: []string{"absent rank 2"}},

	{name: "a second network that one host has lost", what: "two rails; c has no route for the second", hosts: 4, rails: 2, one: "ip route add blackhole 10.78.0.0/25", named: []string{"no-link host c"}},
	{name: "a rail that is slow", what: "two rails; c's second sends 20 Mbit/s", hosts: 4, rails: 2, one: slowly("eth1", "20mbit"), named: []string{"slow-link host c"}},
	{name: "a cable in the wrong switch", what: "two rails; c's second is joined to nobody", hosts: 4, rails: 2, fabric: "ip link set " + portName(2, 1) + " nomaster", named: []string{"no-link host c"}},
	{name: "a rail that is down", what: "two rails; c's second is switched off", hosts: 4, rails: 2, one: "ip link set eth1 down", named: []string{"idle-interface host c, eth1"}},
	{name: "a rail without an address", what: "two rails; c's second has none", hosts: 3, rails: 2, one: "ip addr flush dev eth1", named: []string{"idle-interface host c, eth1"}},
	{name: "one address for two hosts", what: "two rails; c's second has b's address", hosts: 4, rails: 2, one: "ip addr flush dev eth1; ip addr add 10.78.0.2/24 dev eth1",
		named: []string{"duplicate-address host b, eth1 to host c, eth1"}},

	{name: "a slow host", what: "c sends 20 Mbit/s", hosts: 4, one: slowly("eth0", "20mbit"), named: []string{"slow-link host c"}},
	{name: "a slow host of eight", what: "c sends 20 Mbit/s", hosts: 8, one: slowly("eth0", "20mbit"), named: []string{"slow-link host c"}},
	{name: "a slow host of two", what: "b sends 20 Mbit/s", hosts: 2, one: slowly("eth0", "20mbit"), named: []string{"slow-link host b, eth0 to host a, eth0"}},
	{name: "a host that receives slowly", what: "c is sent 20 Mbit/s", hosts: 4, fabric: slowly(portName(2, 0), "20mbit"), named: []string{"slow-link host c"}},
	{name: "a slow first host", what: "a sends and is sent 20 Mbit/s", hosts: 4, each: "if [ HOST = 1 ]; then " + slowly("eth0", "20mbit") + "fi", fabric: slowly(portName(0, 0), "20mbit"), named: []string{"slow-link host a"}},
	{name: "a slow pair", what: "b sends 20 Mbit/s to c", hosts: 4,
		each: "if [ HOST = 2 ]; then tc qdisc add dev eth0 root handle 1: htb default 10; tc class add dev eth0 parent 1: classid 1:10 htb rate 10gbit; " +
			"tc class add dev eth0 parent 1: classid 1:20 htb rate 20mbit; tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.77.0.3/32 flowid 1:20; fi",
		named: []string{"slow-link host b, eth0 to host c, eth0"}},
	{name: "a policer", what: "what b sends to c above 2 MB/s is dropped", hosts: 4, fabric: switches("ip saddr 10.77.0.2 ip daddr 10.77.0.3 limit rate over 2 mbytes/second drop"), named: []string{"slow-link host b, eth0 to host c, eth0"}},

	{name: "a far host", what: "what c sends takes 20 ms", hosts: 4, wires: hostSends(3, wire{delay: 20 * time.Millisecond}), named: []string{"late-link host c"}},
	{name: "a far pair", what: "what b sends to c takes 30 ms", hosts: 4, wires: hostSends(2, wire{delay: 30 * time.Millisecond, onlyTo: 3}), named: []string{"late-link host b, eth0 to host c, eth0"}},
	{name: "jitter of a host", what: "what c sends takes 15 to 30 ms", hosts: 4, wires: hostSends(3, wire{delay: 15 * time.Millisecond, jitter: 15 * time.Millisecond}), named: []string{"late-link host c"}},
	{name: "loss of 2 %", what: "of what c is sent", hosts: 4, one: firewall("ip saddr 10.77.0.0/24 numgen random mod 50 0 drop"), named: []string{"loss host c"}},
	{name: "loss of 5 %", what: "of what c is sent", hosts: 4, one: firewall("ip saddr 10.77.0.0/24 numgen random mod 20 0 drop"), named: []string{"loss host c"}},
	{name: "loss of 20 %", what: "of what c is sent", hosts: 4, one: firewall("ip saddr 10.77.0.0/24 numgen random mod 5 0 drop"), named: []string{"loss host c"}},
	{name: "loss of a pair", what: "a tenth of what b sends to c", hosts: 4, fabric: switches("ip saddr 10.77.0.2 ip daddr 10.77.0.3 numgen random mod 10 0 drop"), named: []string{"loss host b, eth0 to host c, eth0"}},
	{name: "flipped bits", what: "of what c sends, where no checksum sees it", hosts: 4, wires: hostSends(3, wire{flip: 15}), named: []string{"corrupt-link host c"}},
	{name: "flipped bits of a pair", what: "of what b sends to c", hosts: 4, wires: hostSends(2, wire{flip: 15, onlyTo: 3}), named: []string{"corrupt-link host b, eth0 to host c, eth0"}},
	{name: "another MTU", what: "1400 on c", hosts: 4, one: "ip link set eth0 mtu 1400", named: []string{"mtu-differs host c, eth0"}},
	{name: "a black hole", what: "a switch drops packets of more than 1400 bytes from b to c and says nothing", hosts: 4, each: noGSO,
		fabric: switches("ip saddr 10.77.0.2 ip daddr 10.77.0.3 meta length > 1400 drop"), named: []string{"no-stream host b, eth0 to host c, eth0"}},
	{name: "a black hole the other way", what: "the same, from c to b", hosts: 4, each: noGSO,
		fabric: switches("ip saddr 10.77.0.3 ip daddr 10.77.0.2 meta length > 1400 drop"), named: []string{"no-stream host c, eth0 to host b, eth0"}},

	{name: "a host that never comes", what: "c's process does not begin", hosts: 4, before: soon, before1: "exit 0", named: []string{"absent rank 2"}},
	{name: "a host that comes too late", what: "c's process begins after the time in which all have to come", hosts: 3, before: soon, before1: "sleep 5", named: []string{"absent rank 2"}},
	{name: "a process that dies", what: "c's, in the first stage", hosts: 3, before1: "export RINGO_TEST_DOES='host kill -9 $PPID'", named: []string{"died host c, rank 2"}},
	{name: "a process that dies later", what: "c's, while links are measured", hosts: 4, before1: "export RINGO_TEST_DOES='network kill -9 $PPID'", named: []string{"died host c, rank 2"}},
	{name: "a process that is stopped", what: "c's, in the first stage", hosts: 3, before: quickly, before1: "export RINGO_TEST_DOES='host kill -STOP $PPID'", stages: "host", named: []string{"stopped host c, rank 2"}},
	{name: "a host that falls silent", what: "c's interface goes down in the first stage", hosts: 3, before: quickly, before1: "export RINGO_TEST_DOES='host ip link set eth0 down'", stages: "host", named: []string{"stopped host c, rank 2"}},
	{name: "another version", what: "c's ringo is 0.1.0", hosts: 3, before1: "export RINGO_TEST_VERSION=0.1.0", named: []string{"version-differs host c"}},
	{name: "few descriptors", what: "c's process may have 256", hosts: 3, before1: "ulimit -n 256", named: []string{"low-nofile host c, limit nofile"}},
	{name: "few processes", what: "c's user may have 900", hosts: 3, before1: "prlimit --pid $$ --nproc=900", named: []string{"low-nproc host c, limit nproc"}},
	{name: "a full /dev/shm", what: "c's has 8 MiB of 64 left", hosts: 3, before1: "mount -t tmpfs -o size=64m x /dev/shm; head -c 56M /dev/zero > /dev/shm/old", named: []string{"shm-full host c, /dev/shm"}},
	{name: "no /dev/shm", what: "c has none", hosts: 3, before1: "mount -t tmpfs x /dev", named: []string{"shm-missing host c, /dev/shm"}},
	{name: "few cores", what: "c's process may use one", hosts: 3, before1: "exec taskset -c 0 \"$0\"", named: []string{"cores-differ host c"}},
	{name: "a clock that is ahead", what: "c's, by 3 s", hosts: 3, before1: "export RINGO_TEST_CLOCK=3s", named: []string{"clock-offset host c"}},
	{name: "a wrong name of an interface", what: "RINGO_SOCKET_IFNAME of c is that of none", hosts: 3, before1: "export RINGO_SOCKET_IFNAME=ib7", stages: "collectives", named: []string{"collective-rank host c, rank 2"}},
	{name: "collectives of a pair", what: "a switch drops what b sends to c", hosts: 3, fabric: switches("ip saddr 10.77.0.2 ip daddr 10.77.0.3 drop"), stages: "collectives", named: []string{"collective-link host b, rank 1 to host c, rank 2"}},

	{name: "two faults", what: "c sends 20 Mbit/s, and b has another MTU", hosts: 4, each: "if [ HOST = 2 ]; then ip link set eth0 mtu 1400; fi", one: slowly("eth0", "20mbit"), named: []string{"slow-link host c", "mtu-differs host b, eth0"}},
	{name: "two faults of pairs", what: "a switch drops what d sends to e; c has no route to b", hosts: 5, fabric: switches("ip saddr 10.77.0.4 ip daddr 10.77.0.5 drop"), one: "ip route add blackhole 10.77.0.2/32",
		named: []string{"no-link host b, eth0 to host c, eth0", "no-link host d, eth0 to host e, eth0"}},
	{name: "two slow hosts of eight", what: "c and f send 20 Mbit/s", hosts: 8, each: "if [ HOST = 3 -o HOST = 6 ]; then " + slowly("eth0", "20mbit") + "fi", named: []string{"slow-link host c", "slow-link host f"}},
	{name: "a slow and a far host", what: "c sends 20 Mbit/s, and what d sends takes 20 ms", hosts: 6, wires: hostSends(4, wire{delay: 20 * time.Millisecond}), one: slowly("eth0", "20mbit"), named: []string{"slow-link host c", "late-link host d"}},
	{name: "a dead process and a lost way", what: "d's process dies, and c has no route to b", hosts: 5, before: "if [ HOST = 4 ]; then export RINGO_TEST_DOES='host kill -9 $PPID'; fi; ", one: "ip route add blackhole 10.77.0.2/32",
		named: []string{"died host d, rank 3", "no-link host b, eth0 to host c, eth0"}},
}

// noGSO has each packet be one on the way.
const noGSO = "ip link set eth0 gso_max_size 1500 gso_max_segs 1"

// hostSends is that what one host sends goes over a wire.
func hostSends(ill int, w wire) wiring {
	return func(host int) (sends, receives wire) {
		if host == ill {
			return w, wire{}
		}
		return wire{}, wire{}
	}
}
