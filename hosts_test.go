package ringo

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/call"
	"github.com/ringo-go/ringo/choice"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/cudaemu"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/internal/race"
)

// hostsOf gives each rank a Config whose host is its letter.
func hostsOf(hosts string, cfg Config) func(r int) Config {
	return func(r int) Config {
		mine := cfg
		mine.HostID = fmt.Sprintf("host-%c", hosts[r])
		return mine
	}
}

// Every collective, with every algorithm, on host memory of ranks that lie on several hosts: in
// blocks, cyclic, uneven, one on each.
func TestHosts(t *testing.T) {
	for _, hosts := range []string{"aabb", "abab", "aabbb", "aaaabb", "abcb", "abc"} {
		t.Run(hosts, func(t *testing.T) {
			n := len(hosts)
			for a := range call.Algos {
				cfg := Config{Algo: a.String(), SlotBytes: 256, Slots: 4, Interface: "lo", Timeout: 20 * time.Second}
				comms := onHostsWith(t, n, hostsOf(hosts, cfg))
				topo := comms[0].host.Topology()
				for i, kind := range collectives {
					if a != call.Auto && !(choice.Key{Kind: kind, Algo: a}).Exists(topo) {
						continue
					}
					for k, count := range []int{0, 1, n, 65, 3001} {
						op := Call{Kind: kind, Count: count, Type: Int32, Op: Sum, Root: (i + k) % n}
						try(t, comms, op, k%2 == 0, 0)
					}
				}
			}
		})
	}
}

// Slots of a network are larger than those inside a host, unless somebody has set their size.
func TestHostsSlots(t *testing.T) {
	for _, algo := range []string{"ring", "hier", "twoshot"} {
		comms := onHostsWith(t, 4, hostsOf("abab", Config{Algo: algo, Interface: "lo", Timeout: 20 * time.Second}))
		require.Equal(t, []int{1, 4, 1, 4}, []int{comms[0].net.Links.Width(0), comms[0].net.Links.Width(1), comms[0].net.Links.Width(2), comms[0].net.Links.Width(3)})
		for _, count := range []int{1, 40_000, 700_001} {
			try(t, comms, Call{Kind: KindAllReduce, Count: count, Type: Int32, Op: Sum}, count%2 == 0, 0)
			try(t, comms, Call{Kind: KindAllGather, Count: count / 4, Type: Int32}, false, 0)
		}
		noErrors(t, each(comms, func(c *Comm) error { // more than a queue both ways at once
			x, y := make([]byte, 6<<20), make([]byte, 6<<20)
			peer := c.Rank() ^ 1
			g := NewGroup()
			g.Add(c, SendOf(x, peer))
			g.Add(c, RecvOf(y, peer))
			return g.Run()
		}))
	}
	comms := onHostsWith(t, 2, hostsOf("ab", Config{SlotBytes: 4096, Interface: "lo"}))
	require.Equal(t, 1, comms[0].net.Links.Width(1))
}

// Data goes through shared memory inside a host and by sockets across, also in one process.
func TestHostsAreTakenAtTheirWord(t *testing.T) {
	comms := onHostsWith(t, 4, hostsOf("aabb", Config{Interface: "lo"}))
	require.Equal(t, []string{"inproc", "inproc", "socket", "socket"}, []string{
		comms[0].Transport(0), comms[0].Transport(1), comms[0].Transport(2), comms[0].Transport(3)})
}

// Every collective on GPUs of several hosts: P2P inside a host and sockets across.
func TestDeviceHosts(t *testing.T) {
	for _, test := range race.Some(2, []struct{ hosts, algo string }{{"abab", ""}, {"aabb", "hier"}, {"abab", "hiertree"}, {"baab", "hierlog"}, {"aabbb", ""}, {"abb", "ring"}}) {
		hosts, n := test.hosts, len(test.hosts)
		t.Run(hosts+"/"+test.algo, func(t *testing.T) {
			list := devices(t, n, gputest.NVLink(), gputest.Emu(cudaemu.Config{Devices: n}))
			comms := onHosts(t, list, hostsOf(hosts, Config{Algo: test.algo, Interface: "lo", Timeout: 60 * time.Second}))
			for r, c := range comms {
				for p := range comms {
					if want := map[bool]string{true: "p2p", false: "bridge over socket"}[hosts[r] == hosts[p]]; p != r {
						require.Equal(t, want, c.DeviceTransport(p))
					}
				}
			}
			calls := append(everyCall(n, 0, Int32, Sum), everyCall(n, 1001, Int32, Sum)...)
			calls = append(calls, Call{Kind: KindAllReduce, Count: 300_000, Type: Int32, Op: Sum})
			noErrors(t, each(comms, func(c *Comm) error { return checkCalls(c, calls) }))
		})
	}
}

// Two hosts of two ranks on two GPUs: ranks of different hosts share a GPU and do not share
// memory.
func TestDeviceHostsShareGPUs(t *testing.T) {
	const hosts, n, gpus = "aabb", 4, 2
	for _, algo := range race.Some(2, []string{"", "hier"}) {
		t.Run(algo, func(t *testing.T) {
			two := devices(t, gpus, gputest.NVLink(), gputest.Emu(cudaemu.Config{Devices: gpus}))
			var list []*gpu.Device
			var streams []gpu.Stream
			for r := range n {
				list = append(list, two[r%gpus])
				s, err := list[r].NewStream()
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, list[r].DestroyStream(s)) })
				streams = append(streams, s)
			}
			comms := onHosts(t, list, hostsOf(hosts, Config{Algo: algo, Interface: "lo", Timeout: 60 * time.Second}))
			require.Equal(t, "bridge over socket", comms[0].DeviceTransport(2))
			room := arenas(t, comms, 4*n*1001)
			for i, kind := range collectives {
				for k, count := range []int{1001} {
					tryOnDevice(t, comms, room, Call{Kind: kind, Count: count, Type: Int32, Op: Sum, Root: (i + k) % n}, k%2 == 0, k, streams...)
				}
			}
		})
	}
}

// Large data of several hosts is carried out in phases, each a program of its own: inside the
// hosts, across them, inside.
func TestDeviceHostsInPhases(t *testing.T) {
	for _, test := range race.Some(2, []struct{ hosts, algo string }{{"aabb", "hier"}, {"abab", "hierlog"}, {"abab", "hiertree"}}) {
		t.Run(test.hosts+"/"+test.algo, func(t *testing.T) {
			n := len(test.hosts)
			list := devices(t, n, gputest.NVLink(), gputest.Emu(cudaemu.Config{Devices: n}))
			comms := onHosts(t, list, hostsOf(test.hosts, Config{Algo: test.algo, Interface: "lo", Timeout: 60 * time.Second}))
			for _, c := range comms {
				c.gpu.Chooser().PhasesFrom = 1
			}
			var calls []Call
			for _, count := range []int{1, 1001, 30_000} {
				calls = append(calls, Call{Kind: KindAllReduce, Count: count, Type: Int32, Op: Sum}, Call{Kind: KindAllGather, Count: count, Type: Uint8})
			}
			calls = append(calls, Call{Kind: KindAllReduce, Count: 501, Type: Int32, Op: Avg}, Call{Kind: KindAllReduce, Count: 501, Type: Float32, Op: PreMulSum(2)},
				Call{Kind: KindReduceScatter, Count: 301, Type: Int32, Op: Sum})
			noErrors(t, each(comms, func(c *Comm) error { return checkCalls(c, calls) }))
		})
	}
}

// All phases are loaded before the first is queued: one thread makes the ranks' calls, and loading
// waits for the kernels of the GPU, which wait for the other ranks.
func TestDeviceHostsLoadPhasesFirst(t *testing.T) {
	const hosts, n, count = "aabb", 4, 100
	list := devices(t, n, gputest.NVLink(), gputest.Emu(cudaemu.Config{Devices: n, LoadsWait: true}))
	comms := onHosts(t, list, hostsOf(hosts, Config{Algo: "hier", Interface: "lo", Timeout: 5 * time.Second}))
	for _, c := range comms {
		c.gpu.Chooser().PhasesFrom = 1
		x := alloc(t, c.Device(), make([]byte, 4*count))
		require.NoError(t, c.Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: count, Type: Int32, Op: Avg}))
	}
	noErrors(t, each(comms, func(c *Comm) error { return c.Synchronize(0) }))
}

// A graph replays the phases of a call, beside eager calls.
func TestDeviceHostsGraph(t *testing.T) {
	const hosts, n, count = "abab", 4, 1000
	list := devices(t, n, gputest.NVLink(), gputest.Emu(cudaemu.Config{Devices: n}))
	comms := onHosts(t, list, hostsOf(hosts, Config{Algo: "hier", Interface: "lo", Timeout: 60 * time.Second}))
	ones := make([]float32, count)
	for i := range ones {
		ones[i] = 1
	}
	noErrors(t, each(comms, func(c *Comm) error {
		c.gpu.Chooser().PhasesFrom = 1
		d := c.Device()
		x := alloc(t, d, floats(ones))
		s, err := d.NewStream()
		if err != nil {
			return err
		}
		call := &Call{Kind: KindAllReduce, In: x, Out: x, Count: count, Type: Float32, Stream: s}
		var graph cuda.GraphExec
		err = d.With(func() error {
			driver := d.Driver()
			err := driver.StreamBeginCapture(s, cuda.CaptureRelaxed)
			err = errors.Join(err, c.Do(call))
			g, failed := driver.StreamEndCapture(s)
			if err = errors.Join(err, failed); err != nil {
				return err
			}
			graph, err = driver.GraphInstantiate(g, 0)
			return errors.Join(err, driver.GraphDestroy(g))
		})
		for range 2 {
			if err == nil {
				err = errors.Join(d.With(func() error { return d.Driver().GraphLaunch(graph, s) }), c.Do(call))
			}
		}
		got := make([]byte, 4*count)
		err = errors.Join(err, c.Synchronize(s), d.Read(got, x))
		want := make([]float32, count)
		for i := range want {
			want[i] = n * n * n * n
		}
		if !bytes.Equal(floats(want), got) {
			err = errors.Join(err, fmt.Errorf("rank %d: %v", c.Rank(), got[:16]))
		}
		return errors.Join(err, d.With(func() error { return d.Driver().GraphExecDestroy(graph) }), d.DestroyStream(s))
	}))
}
