package gpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Where GPUs do not reach each other, queues are in host memory, and between
// hosts there is a bridge.
func TestDevicePaths(t *testing.T) {
	tier.Long(t)
	plain := func(int) ringo.Config { return ringo.Config{} }
	emulated := func(c cudaemu.Config) []gputest.Option { return []gputest.Option{gputest.Emu(c)} }
	hosts := func(r int) ringo.Config { return ringo.Config{HostID: fmt.Sprint("host", r/2)} }
	// Data move there as they do elsewhere.
	alike := map[string]bool{"one rank refuses": true, "unix": true, "tls": true, "two hosts without P2P": true,
		"no lines": true, "no link": true, "unknown link": true, "no access": true, "no pinned memory": true}
	type test struct {
		name   string
		n      int
		config func(r int) ringo.Config
		paths  []string // of rank 0
		emu    []gputest.Option
	}
	for _, tc := range []test{
		{"p2p", 2, plain, []string{"GPU memory: p2p with rank 1"}, nil},
		{"host memory", 3, func(int) ringo.Config { return commtest.Under(ringo.Config{}, "RINGO_P2P_DISABLE=1") },
			[]string{"GPU memory: host memory with ranks 1, 2 (rank 0: RINGO_P2P_DISABLE is set)"}, nil},
		{"one rank refuses", 3,
			func(r int) ringo.Config { return commtest.Under(ringo.Config{}, fmt.Sprint("RINGO_P2P_DISABLE=", r/2)) },
			[]string{"GPU memory: p2p with rank 1", "GPU memory: host memory with rank 2 (rank 2: RINGO_P2P_DISABLE is set)"},
			nil},
		{"bridge", 2, func(int) ringo.Config {
			return commtest.Under(ringo.Config{}, "RINGO_P2P_DISABLE=1", "RINGO_SHM_DISABLE=1")
		},
			[]string{"GPU memory: bridge over inproc with rank 1 (rank 0: RINGO_P2P_DISABLE is set; rank 0: RINGO_SHM_DISABLE " +
				"is set)"}, nil},
		{"unix", 3, func(int) ringo.Config { return ringo.Config{Transport: "socket", Net: "socket"} },
			[]string{"GPU memory: bridge over socket with ranks 1, 2 (rank 0: transport socket)"}, nil},
		{"tls", 2, func(int) ringo.Config {
			return ringo.Config{Transport: "socket", SocketNetwork: "tcp", Interface: "lo", TLS: true}
		},
			[]string{"GPU memory: bridge over socket with rank 1 (rank 0: transport socket)"}, nil},
		{"two hosts", 4, hosts, []string{"GPU memory: p2p with rank 1",
			"GPU memory: bridge over socket with ranks 2, 3 (different hosts)"}, nil},
		{"two hosts without P2P", 4, func(r int) ringo.Config { return commtest.Under(hosts(r), "RINGO_P2P_DISABLE=1") },
			[]string{"GPU memory: host memory with rank 1 (rank 0: RINGO_P2P_DISABLE is set)"}, nil},
		{"no link", 3, plain, []string{"GPU memory: p2p with rank 1",
			"GPU memory: host memory with rank 2 (the GPU of rank 0 does not reach that of rank 2: no NVLink or PCIe peer " +
				"access)"},
			emulated(cudaemu.Config{Devices: 3, Plain: !tier.Full(), Peers: func(a, b int) bool { return a+b == 1 }})},
		{"pcie", 3, plain, []string{"GPU memory: pcie with ranks 1, 2 (PCIe: lines of 128 bytes may tear there, so they " +
			"have digests)"},
			emulated(cudaemu.Config{Devices: 3, Link: gputest.PCIe, Seed: 1})},
		{"unknown link", 2, plain,
			[]string{"GPU memory: pcie with rank 1 (an unknown link: lines of 128 bytes may tear there, so they have digests)"},
			emulated(cudaemu.Config{Devices: 2, Link: func(a, b int) cuda.Link { return cuda.UnknownLink }, Seed: 2})},
		{"two bridges of NVLink", 4, plain, []string{"GPU memory: p2p with rank 1 (NVLink)",
			"GPU memory: pcie with ranks 2, 3 (PCIe: lines of 128 bytes may tear"},
			emulated(cudaemu.Config{Devices: 4, Seed: 3, Link: func(a, b int) cuda.Link {
				if a/2 == b/2 {
					return cuda.NVLink
				}
				return cuda.PCIe
			}})},
		{"no lines", 2, func(int) ringo.Config { return commtest.Under(ringo.Config{}, "RINGO_LINES=0") },
			[]string{"GPU memory: p2p with rank 1 (NVLink: no lines of 128 bytes, RINGO_LINES=0)"}, nil},
		{"no access", 2, plain,
			[]string{"GPU memory: host memory with rank 1 (rank 1 opens memory of rank 0: cuCtxEnablePeerAccess: "},
			emulated(cudaemu.Config{Devices: 2, Plain: !tier.Full(),
				Faults: []cudaemu.Injection{{Call: "cuCtxEnablePeerAccess", Nth: 1, Device: 2, Result: cuda.ErrNotSupported}}})},
		{"no pinned memory", 3, func(int) ringo.Config { return commtest.Under(ringo.Config{}, "RINGO_P2P_DISABLE=1") },
			[]string{"GPU memory: host memory with rank 1 (rank 0: RINGO_P2P_DISABLE is set)",
				"GPU memory: bridge over inproc with rank 2 (rank 0: RINGO_P2P_DISABLE is set; rank 2: cuMemHostRegister: "},
			emulated(cudaemu.Config{Devices: 3, Plain: !tier.Full(),
				Faults: []cudaemu.Injection{{Call: "cuMemHostRegister", Nth: 1, Device: 3, Result: cuda.ErrOperatingSystem}}})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.emu != nil && gputest.OnGPU() {
				t.Skip("needs a GPU that lacks something")
			}
			o := append([]gputest.Option{gputest.NVLink()}, tc.emu...)
			if tc.emu == nil && alike[tc.name] {
				o = append(o, gputest.Unchecked(tc.n))
			}
			list := gputest.GPUs(t, tc.n, o...)
			comms := commtest.OnHosts(t, list, tc.config)
			paths := strings.Join(comms[0].Paths(), "\n")
			for _, p := range tc.paths {
				require.Contains(t, paths, p)
			}
			calls := append(commtest.EveryCall(tc.n, tier.Count(301, 1001), ringo.Int32, ringo.Sum),
				ringo.Call{Kind: ringo.KindAllReduce, Count: tier.Count(2001, 5000), Type: ringo.BFloat16, Op: ringo.Max})
			if calls = tier.Some(2, calls); alike[tc.name] {
				calls = tier.Some(2, calls)
			}
			if tier.Full() {
				// nothing, with scratch memory
				calls = append(calls, commtest.EveryCall(tc.n, 0, ringo.Float32, ringo.PreMulSum(2))...)
				calls = append(calls, commtest.EveryCall(tc.n, 0, ringo.Int32, ringo.Sum)...)
				calls = append(calls, commtest.EveryCall(tc.n, 77, ringo.Uint8, ringo.Max)...)
			}
			if tier.Pairs() && !alike[tc.name] {
				calls = append(calls, commtest.EveryCall(tc.n, 8000, ringo.BFloat16, ringo.Max)...)
			}
			commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return commtest.CheckCalls(c, calls) }))
		})
	}
}

// Direct kernels send lines, so they are used only where the links between all GPUs carry lines
// whole, or where RINGO_LINES says so.
func TestDeviceLines(t *testing.T) {
	if gputest.OnGPU() {
		t.Skip("a GPU's links are what they are")
	}
	nv := func(a, b int) cuda.Link { return cuda.NVLink }
	for _, tc := range []struct {
		name, lines string
		link        func(a, b int) cuda.Link
		want        bool
	}{
		{"NVLink", "", nv, true}, {"NVLink, not wanted", "0", nv, false}, {"PCIe", "", gputest.PCIe, true},
		{"PCIe, not wanted", "0", gputest.PCIe, false}, {"PCIe, as they are", "1", gputest.PCIe, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list := gputest.GPUs(t, 2, gputest.Emu(cudaemu.Config{Devices: 2, Link: tc.link}))
			c := commtest.OnHosts(t, list,
				func(int) ringo.Config { return commtest.Under(ringo.Config{}, "RINGO_LINES="+tc.lines) })[0]
			require.Equal(t, tc.want, slices.Contains(c.DeviceAlgorithms(ringo.KindBroadcast, 1024, false), "direct"))
			require.Contains(t, c.DeviceAlgorithms(ringo.KindAllReduce, 1024, true), "window", "windows need no lines")
		})
	}
}

// Where no path is left, operations on GPU memory fail and say why, and the rest works.
func TestDeviceNoPath(t *testing.T) {
	list := gputest.GPUs(t, 2)
	comms := commtest.OnHosts(t, list,
		func(int) ringo.Config { return commtest.Under(ringo.Config{Transport: "p2p"}, "RINGO_P2P_DISABLE=1") })
	commtest.NoErrors(t, commtest.Each(comms,
		func(c *ringo.Comm) error { return ringo.AllReduce(c, []int32{1}, ringo.Sum) }))
	x := commtest.Alloc(t, list[0], make([]byte, 64))
	err := comms[0].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 4, Type: ringo.Float32})
	require.ErrorIs(t, err, ringo.ErrUnsupported)
	require.ErrorContains(t, err,
		"nothing connects ranks 0 and 1: rank 0: RINGO_P2P_DISABLE is set; rank 0: transport p2p")
	require.NoError(t, comms[0].Err())
	require.Empty(t, comms[0].DeviceTransport(1))
}
