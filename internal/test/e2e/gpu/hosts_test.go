package gpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/core/choice"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// hostsOf gives each rank a Config whose host is its letter.
func hostsOf(hosts string, cfg ringo.Config) func(r int) ringo.Config {
	return func(r int) ringo.Config {
		mine := cfg
		mine.HostID = fmt.Sprintf("host-%c", hosts[r])
		return mine
	}
}

// Every collective, with every algorithm, on host memory of ranks that lie on several hosts: in
// blocks, cyclic, uneven, one on each.
func TestHosts(t *testing.T) {
	tier.Long(t)
	for h, hosts := range []string{"aabb", "abab", "aabbb", "aaaabb", "abcb", "abc"} {
		t.Run(hosts, func(t *testing.T) {
			n := len(hosts)
			topo := choice.TopologyOf(strings.Split(hosts, ""))
			for a := range call.Algos {
				if !tier.Pairs() && (h+int(a))%6 > 0 {
					continue
				}
				cfg := ringo.Config{Algo: a.String(), SlotBytes: 256, Slots: 4, Interface: "lo", Timeout: 20 * time.Second}
				comms := commtest.OnHostsWith(t, n, hostsOf(hosts, cfg))
				for i, kind := range commtest.Collectives {
					if a != call.Auto && !(choice.Key{Kind: kind, Algo: a}).Exists(topo) {
						continue
					}
					for k, count := range []int{0, 1, n, 65, 3001} {
						op := ringo.Call{Kind: kind, Count: count, Type: ringo.Int32, Op: ringo.Sum, Root: (i + k) % n}
						commtest.Try(t, comms, op, k%2 == 0, 0)
					}
				}
			}
		})
	}
}

// Slots of a network are larger than those inside a host.
func TestHostsSlots(t *testing.T) {
	tier.Long(t)
	for _, algo := range tier.Some(2, []string{"hier", "ring", "twoshot"}) {
		comms := commtest.OnHostsWith(t, 4,
			hostsOf("abab", ringo.Config{Algo: algo, Interface: "lo", Timeout: 20 * time.Second}))
		for _, count := range []int{1, 40_000, 700_001} {
			commtest.Try(t, comms, ringo.Call{Kind: ringo.KindAllReduce, Count: count, Type: ringo.Int32, Op: ringo.Sum},
				count%2 == 0, 0)
			commtest.Try(t, comms, ringo.Call{Kind: ringo.KindAllGather, Count: count / 4, Type: ringo.Int32}, false, 0)
		}
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { // more than a queue both ways at once
			x, y := make([]byte, 6<<20), make([]byte, 6<<20)
			peer := c.Rank() ^ 1
			g := ringo.NewGroup()
			g.Add(c, ringo.SendOf(x, peer))
			g.Add(c, ringo.RecvOf(y, peer))
			return g.Run()
		}))
	}
}

// Data goes through shared memory inside a host and by sockets across, also in one process.
func TestHostsAreTakenAtTheirWord(t *testing.T) {
	comms := commtest.OnHostsWith(t, 4, hostsOf("aabb", ringo.Config{Interface: "lo"}))
	require.Equal(t, []string{"inproc", "inproc", "socket", "socket"}, []string{
		comms[0].Transport(0), comms[0].Transport(1), comms[0].Transport(2), comms[0].Transport(3)})
}

// Every collective on GPUs of several hosts: P2P inside a host and sockets across.
func TestDeviceHosts(t *testing.T) {
	tier.Long(t)
	for _, test := range tier.Some(4, []struct{ hosts, algo string }{{"abab", ""}, {"aabb", "hier"}, {"abab", "hiertree"},
		{"baab", "hierlog"}, {"aabbb", "hier"}, {"abb", "ring"}, {"aabbb", ""}, {"abbab", "hierlog"}}) {
		hosts, n := test.hosts, len(test.hosts)
		t.Run(hosts+"/"+test.algo, func(t *testing.T) {
			list := gputest.GPUs(t, n, gputest.NVLink(), gputest.Unchecked(n))
			comms := commtest.OnHosts(t, list,
				hostsOf(hosts, ringo.Config{Algo: test.algo, Interface: "lo", Timeout: 60 * time.Second}))
			for r, c := range comms {
				for p := range comms {
					if want := map[bool]string{true: "p2p", false: "bridge over socket"}[hosts[r] == hosts[p]]; p != r {
						require.Equal(t, want, c.DeviceTransport(p))
					}
				}
			}
			calls := commtest.EveryCall(n, tier.Count(301, 1001), ringo.Int32, ringo.Sum)
			if tier.Full() {
				calls = append(calls, commtest.EveryCall(n, 0, ringo.Int32, ringo.Sum)...)
			}
			calls = append(calls, ringo.Call{Kind: ringo.KindAllReduce, Count: tier.Count(8_000, 20_000), Type: ringo.Int32,
				Op: ringo.Sum})
			commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return commtest.CheckCalls(c, calls) }))
		})
	}
}

// Two hosts of two ranks on two GPUs: ranks of different hosts share a GPU and do not share
// memory.
func TestDeviceHostsShareGPUs(t *testing.T) {
	tier.Long(t)
	const hosts, n, gpus = "aabb", 4, 2
	for _, algo := range tier.Some(2, []string{"", "hier"}) {
		t.Run(algo, func(t *testing.T) {
			two := gputest.GPUs(t, gpus, gputest.NVLink(), gputest.Unchecked(gpus))
			list := slices.Repeat(two, n/gpus)
			streams := commtest.Streams(t, list)
			comms := commtest.OnHosts(t, list,
				hostsOf(hosts, ringo.Config{Algo: algo, Interface: "lo", Timeout: 60 * time.Second}))
			require.Equal(t, "bridge over socket", comms[0].DeviceTransport(2))
			room := commtest.Arenas(t, comms, 4*n*1001)
			for i, kind := range commtest.Collectives {
				commtest.TryOnDevice(t, comms, room, ringo.Call{Kind: kind, Count: 1001, Type: ringo.Int32, Op: ringo.Sum,
					Root: i % n}, true, 0, streams...)
			}
		})
	}
}
