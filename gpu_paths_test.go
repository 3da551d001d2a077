package ringo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cuda"
	"github.com/ringo-go/ringo/internal/cudaemu"
	"github.com/ringo-go/ringo/internal/gputest"
	"github.com/ringo-go/ringo/internal/race"
	"github.com/ringo-go/ringo/mem"
)

// onHosts makes a communicator of a rank a device, each with its own Config.
func onHosts(t testing.TB, list []*gpu.Device, config func(rank int) Config) []*Comm {
	t.Helper()
	return onHostsWith(t, len(list), func(r int) Config {
		cfg := config(r)
		cfg.Device = list[r]
		return cfg
	})
}

// onHostsWith makes a communicator of n ranks, each with its own Config.
func onHostsWith(t testing.TB, n int, config func(rank int) Config) []*Comm {
	t.Helper()
	comms, errs := make([]*Comm, n), make([]error, n)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for r, g := range bootstrap.Local(n) {
		wg.Go(func() {
			cfg := config(r)
			cfg.Rank, cfg.Size = r, n
			if cfg, errs[r] = cfg.fill(func(string) string { return "" }); errs[r] == nil {
				comms[r], errs[r] = open(ctx, cfg, g)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		var errs []error
		for _, c := range comms {
			errs = append(errs, c.Close())
		}
		require.NoError(t, errors.Join(errs...))
	})
	return comms
}

// everyCall is a call of each kind of collective for n ranks, without memory.
func everyCall(n, count int, typ DataType, op RedOp) []Call {
	calls := []Call{{Kind: KindBarrier}}
	for k := KindAllReduce; k < KindSend; k++ {
		calls = append(calls, Call{Kind: k, Count: count, Type: typ, Op: op, Root: n - 1})
	}
	counts := make([]int, n)
	for i := range counts {
		counts[i] = count * (i % 2) // every other rank has nothing
	}
	return append(calls, Call{Kind: KindAllGatherv, Type: typ, OutCounts: counts})
}

// checkCalls carries calls out on GPUs and compares with host memory, whose half
// of the communicator goes other ways.
func checkCalls(c *Comm, calls []Call) error {
	d := c.Device()
	rng := rand.New(rand.NewPCG(uint64(c.Rank()), 1))
	for _, call := range calls {
		size := 1
		if call.Kind != KindBarrier {
			size = call.Type.Size()
		}
		in, out := call.Shape(c.Rank(), c.Size())
		give, want, got := make([]byte, in*size), make([]byte, out*size), make([]byte, out*size)
		for i := range give {
			if i%size == 0 || size == 1 { // small numbers, also as floats
				give[i] = byte(rng.IntN(4))
			}
		}
		host := call
		host.In, host.Out = mem.Host(give), mem.Host(want)
		if err := c.Do(&host); err != nil {
			return err
		}
		from, err := d.Alloc(max(1, len(give)))
		if err != nil {
			return err
		}
		to, err := d.Alloc(max(1, len(got)))
		if err != nil {
			return err
		}
		call.In, call.Out = from.Slice(0, len(give)), to.Slice(0, len(got))
		if err := d.Write(call.In, give); err != nil {
			return err
		}
		if err := d.Write(to, bytes.Repeat([]byte{0xee}, max(1, len(got)))); err != nil {
			return err
		}
		if err := c.Do(&call); err != nil {
			return err
		}
		if err := c.Synchronize(call.Stream); err != nil {
			return err
		}
		if err := d.Read(got, call.Out); err != nil {
			return err
		}
		if !bytes.Equal(got, want) && !(call.Kind == KindReduce && c.Rank() != call.Root) {
			return fmt.Errorf("rank %d: %v is wrong", c.Rank(), &call)
		}
		if err := errors.Join(d.Free(from), d.Free(to)); err != nil {
			return err
		}
	}
	return nil
}

// Where GPUs do not reach each other, queues are in host memory, and between
// hosts there is a bridge.
func TestDevicePaths(t *testing.T) {
	plain := func(int) Config { return Config{} }
	emulated := func(c cudaemu.Config) []gputest.Option { return []gputest.Option{gputest.Emu(c)} }
	hosts := func(r int) Config { return Config{HostID: fmt.Sprint("host", r/2)} }
	type test struct {
		name   string
		n      int
		config func(r int) Config
		paths  []string // of rank 0
		emu    []gputest.Option
	}
	for _, tc := range race.Some(4, []test{
		{"p2p", 2, plain, []string{"GPU memory: p2p with rank 1"}, nil},
		{"host memory", 3, func(int) Config { return Config{noP2P: "RINGO_P2P_DISABLE is set"} },
			[]string{"GPU memory: host memory with ranks 1, 2 (rank 0: RINGO_P2P_DISABLE is set)"}, nil},
		{"one rank refuses", 3, func(r int) Config { return Config{noP2P: map[int]string{2: "RINGO_P2P_DISABLE is set"}[r]} },
			[]string{"GPU memory: p2p with rank 1", "GPU memory: host memory with rank 2 (rank 2: RINGO_P2P_DISABLE is set)"}, nil},
		{"bridge", 2, func(int) Config { return Config{noP2P: "P off", noSHM: "S off"} },
			[]string{"GPU memory: bridge over inproc with rank 1 (rank 0: P off; rank 0: S off)"}, nil},
		{"unix", 3, func(int) Config { return Config{Transport: "socket", Net: "socket"} },
			[]string{"GPU memory: bridge over socket with ranks 1, 2 (rank 0: transport socket)"}, nil},
		{"tls", 2, func(int) Config {
			return Config{Transport: "socket", SocketNetwork: "tcp", Interface: "lo", TLS: true}
		},
			[]string{"GPU memory: bridge over socket with rank 1 (rank 0: transport socket)"}, nil},
		{"two hosts", 4, hosts, []string{"GPU memory: p2p with rank 1",
			"GPU memory: bridge over socket with ranks 2, 3 (different hosts)"}, nil},
		{"two hosts without P2P", 4, func(r int) Config { c := hosts(r); c.noP2P = "off"; return c },
			[]string{"GPU memory: host memory with rank 1 (rank 0: off)"}, nil},
		{"no link", 3, plain, []string{"GPU memory: p2p with rank 1",
			"GPU memory: host memory with rank 2 (the GPU of rank 0 does not reach that of rank 2: no NVLink or PCIe peer access, or CUDA_VISIBLE_DEVICES hides it)"},
			emulated(cudaemu.Config{Devices: 3, Peers: func(a, b int) bool { return a+b == 1 }})},
		{"pcie", 3, plain, []string{"GPU memory: pcie with ranks 1, 2 (PCIe: lines of 128 bytes may tear there, so they have digests)"},
			emulated(cudaemu.Config{Devices: 3, Link: gputest.PCIe, Seed: 1})},
		{"unknown link", 2, plain, []string{"GPU memory: pcie with rank 1 (an unknown link: lines of 128 bytes may tear there, so they have digests)"},
			emulated(cudaemu.Config{Devices: 2, Link: func(a, b int) cuda.Link { return cuda.UnknownLink }, Seed: 2})},
		{"two bridges of NVLink", 4, plain, []string{"GPU memory: p2p with rank 1 (NVLink)", "GPU memory: pcie with ranks 2, 3 (PCIe: lines of 128 bytes may tear"},
			emulated(cudaemu.Config{Devices: 4, Seed: 3, Link: func(a, b int) cuda.Link {
				if a/2 == b/2 {
					return cuda.NVLink
				}
				return cuda.PCIe
			}})},
		{"no lines", 2, func(int) Config { return Config{lines: "0"} }, []string{"GPU memory: p2p with rank 1 (NVLink: no lines of 128 bytes, RINGO_LINES=0)"}, nil},
		{"no access", 2, plain, []string{"GPU memory: host memory with rank 1 (rank 1 opens memory of rank 0: cuCtxEnablePeerAccess: "},
			emulated(cudaemu.Config{Devices: 2, Faults: []cudaemu.Injection{{Call: "cuCtxEnablePeerAccess", Nth: 1, Device: 2, Result: cuda.ErrNotSupported}}})},
		{"no pinned memory", 3, func(int) Config { return Config{noP2P: "off"} }, []string{"GPU memory: host memory with rank 1 (rank 0: off)",
			"GPU memory: bridge over inproc with rank 2 (rank 0: off; rank 2: cuMemHostRegister: "},
			emulated(cudaemu.Config{Devices: 3, Faults: []cudaemu.Injection{{Call: "cuMemHostRegister", Nth: 1, Device: 3, Result: cuda.ErrOperatingSystem}}})},
	}) {
		t.Run(tc.name, func(t *testing.T) {
			if tc.emu != nil && gputest.OnGPU() {
				t.Skip("needs a GPU that lacks something")
			}
			list := devices(t, tc.n, append([]gputest.Option{gputest.NVLink()}, tc.emu...)...)
			comms := onHosts(t, list, tc.config)
			paths := strings.Join(comms[0].Paths(), "\n")
			for _, p := range tc.paths {
				require.Contains(t, paths, p)
			}
			calls := everyCall(tc.n, 0, Float32, PreMulSum(2)) // nothing, with scratch memory
			for _, count := range []int{0, 1001} {
				calls = append(calls, everyCall(tc.n, count, Int32, Sum)...)
			}
			calls = append(calls, everyCall(tc.n, 77, Uint8, Max)...)
			if !race.Enabled {
				calls = append(calls, everyCall(tc.n, 20000, BFloat16, Max)...)
			}
			noErrors(t, each(comms, func(c *Comm) error { return checkCalls(c, calls) }))
		})
	}
}

// Direct kernels send lines, so they are there where the link between all GPUs carries lines
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
		{"NVLink", "", nv, true}, {"NVLink, not wanted", "0", nv, false}, {"PCIe", "", gputest.PCIe, true}, {"PCIe, not wanted", "0", gputest.PCIe, false}, {"PCIe, as they are", "1", gputest.PCIe, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list := devices(t, 2, gputest.Emu(cudaemu.Config{Devices: 2, Link: tc.link}))
			c := onHosts(t, list, func(int) Config { return Config{lines: tc.lines} })[0]
			require.Equal(t, tc.want, c.gpu.Chooser().Kernels.LongestDirect() > 0)
			require.Contains(t, c.DeviceAlgorithms(KindAllReduce, 1024, true), "window", "windows need no lines")
		})
	}
}

// Where nothing is left, operations on GPU memory say so, and the rest works.
func TestDeviceNoPath(t *testing.T) {
	list := devices(t, 2)
	comms := onHosts(t, list, func(int) Config { return Config{Transport: "p2p", noP2P: "RINGO_P2P_DISABLE is set"} })
	noErrors(t, each(comms, func(c *Comm) error { return AllReduce(c, []int32{1}, Sum) }))
	x := alloc(t, list[0], make([]byte, 64))
	err := comms[0].Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 4, Type: Float32})
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "nothing connects ranks 0 and 1: rank 0: RINGO_P2P_DISABLE is set; rank 0: transport p2p")
	require.NoError(t, comms[0].Err())
	require.Empty(t, comms[0].DeviceTransport(1))
}
