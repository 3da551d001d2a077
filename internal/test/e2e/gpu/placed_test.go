package gpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/gpupaths"
	"github.com/ringo-go/ringo/core/paths"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/transport"
	"github.com/ringo-go/ringo/transport/transporttest"
)

// withCards has tests use a network of cards. refuse says for each rank why memory cannot be registered.
func withCards(t *testing.T, refuse func(rank int, m transport.Memory) error) {
	t.Cleanup(paths.WithNetwork(transport.Network{
		Name: "card",
		Probe: func(transport.NetworkOptions) (transport.Found, error) {
			return transport.Found{Kind: "card", Devices: []transport.NetworkDevice{{Name: "card0"}}}, nil
		},
		Open: func(cfg transport.Config, _ transport.NetworkOptions) transport.Transport {
			return transporttest.NewCard(cfg, func(m transport.Memory) error { return refuse(cfg.Self.Rank, m) })
		},
	}))
}

// Between hosts, network cards move slots where they lie: on the GPU, or in pinned memory if a rank's GPU
// cannot; otherwise slots are copied. Each rank's memory is its own affair, but either both ends copy or
// none.
func TestDevicePlaced(t *testing.T) {
	tier.Long(t)
	if gputest.OnGPU() {
		t.Skip("a GPU's memory cannot be mapped by a card that is played")
	}
	gpu := func(rank int, m transport.Memory) error {
		if rank == 1 && !m.IsHost() {
			return errors.New("no GPU of rank 1")
		}
		return nil
	}
	const direct = "slots on the GPU, by dma-buf: GPUDirect"
	pinned := func(why string) string { return "slots in pinned memory, without copies; not on the GPU: " + why }
	for _, tc := range []struct {
		name   string
		n      int
		emu    cudaemu.Config
		config ringo.Config
		refuse func(rank int, m transport.Memory) error
		notes  map[int]string // by rank: with each of its peers across hosts
	}{
		{"on GPUs", 4, cudaemu.Config{RDMA: true}, ringo.Config{}, nil,
			map[int]string{0: "ranks 2, 3 (different hosts; " + direct, 3: "ranks 0, 1 (different hosts; " + direct}},
		{"one GPU is refused", 3, cudaemu.Config{RDMA: true}, ringo.Config{}, gpu,
			map[int]string{0: "ranks 1, 2 (different hosts; " + direct, 1: "ranks 0, 2 (different hosts; " +
				pinned("card: register: no GPU of rank 1")}},
		{"one rank copies", 3, cudaemu.Config{RDMA: true}, ringo.Config{}, func(rank int, m transport.Memory) error {
			if rank == 1 {
				return errors.New("no memory of rank 1")
			}
			return nil
		}, map[int]string{0: "rank 1 (different hosts; slots are copied: rank 1: not on the GPU: card: register: no memory " +
			"of rank 1; not in pinned memory: card: register: no memory",
			2: "rank 0 (different hosts; " + direct}},
		{"GPUs without RDMA", 2, cudaemu.Config{}, ringo.Config{}, nil,
			map[int]string{0: pinned("p2p: memory for network cards: the GPU lets no network cards into its memory")}},
		{"no dma-buf", 2, cudaemu.Config{RDMA: true}, commtest.Under(ringo.Config{}, "NCCL_DMABUF_ENABLE=0"), nil,
			map[int]string{1: pinned("card: register: memory of a GPU without a dma-buf")}},
		{"switched off", 2, cudaemu.Config{RDMA: true}, commtest.Under(ringo.Config{}, "NCCL_NET_GDR_LEVEL=LOC"), nil,
			map[int]string{1: pinned("NCCL_NET_GDR_LEVEL is LOC")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.refuse == nil {
				tc.refuse = func(int, transport.Memory) error { return nil }
			}
			withCards(t, tc.refuse)
			tc.emu.Devices = tc.n
			list := gputest.GPUs(t, tc.n, gputest.NVLink(), gputest.Emu(tc.emu))
			comms := commtest.OnHosts(t, list, func(r int) ringo.Config {
				cfg := tc.config
				cfg.Net, cfg.HostID = "card", fmt.Sprint("host", r)
				if tc.n == 4 {
					cfg.HostID = fmt.Sprint("host", r/2)
				}
				return cfg
			})
			for r, note := range tc.notes {
				require.Contains(t, strings.Join(comms[r].Paths(), "\n"), "GPU memory: bridge over card with ")
				require.Contains(t, strings.Join(comms[r].Paths(), "\n"), note)
			}
			calls := []ringo.Call{{Kind: ringo.KindBarrier},
				{Kind: ringo.KindAllReduce, Count: 3000, Type: ringo.Int32, Op: ringo.Sum},
				{Kind: ringo.KindAlltoAll, Count: 1001, Type: ringo.Uint8}}
			if tc.n == 4 {
				calls = tier.Some(2, commtest.EveryCall(tc.n, tier.Count(301, 1001), ringo.Int32, ringo.Sum))
				if tier.Full() {
					calls = append(calls, commtest.EveryCall(tc.n, 0, ringo.Float32, ringo.PreMulSum(2))...)
				}
				if tier.Pairs() {
					calls = append(calls, commtest.EveryCall(tc.n, 20000, ringo.BFloat16, ringo.Max)...)
				}
			}
			commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return commtest.CheckCalls(c, calls) }))
		})
	}
}

// Slots lie on the GPU for the peers whose data go over near cards, and in pinned memory for the others.
func TestDevicePlacedNear(t *testing.T) {
	tier.Long(t)
	if gputest.OnGPU() {
		t.Skip("a GPU's memory cannot be mapped by a card that is played")
	}
	const ranks = 3
	list := gputest.GPUs(t, ranks, gputest.NVLink(), gputest.Emu(cudaemu.Config{RDMA: true, Devices: ranks}))
	root := t.TempDir()
	t.Cleanup(gpupaths.WithSysfs(root))
	put := func(link, bus string) {
		at := filepath.Join(root, "devices", bus)
		require.NoError(t, os.MkdirAll(at, 0o700))
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, link)), 0o700))
		require.NoError(t, os.Symlink(at, filepath.Join(root, link)))
	}
	for i, d := range list {
		bus, err := d.Driver().DeviceGetPCIBusId(d.Handle())
		require.NoError(t, err)
		put("bus/pci/devices/"+strings.ToLower(bus), fmt.Sprintf("pci0000:10/0000:10:01.0/0000:1%d:00.0", i))
	}
	put("class/infiniband/card0/device", "pci0000:10/0000:10:02.0/0000:20:00.0")
	put("class/infiniband/card1/device", "pci0000:37/0000:37:01.0/0000:38:00.0")
	t.Cleanup(paths.WithNetwork(transport.Network{
		Name: "card",
		Probe: func(o transport.NetworkOptions) (transport.Found, error) {
			used := "card0"
			if o.Near("card1") < o.Near("card0") || o.IB.HCA == "card1" {
				used = "card1"
			}
			return transport.Found{Kind: "card", Devices: []transport.NetworkDevice{{Name: "card0"}, {Name: "card1"}},
				Used: []string{used}}, nil
		},
		Open: func(cfg transport.Config, _ transport.NetworkOptions) transport.Transport {
			return transporttest.NewCard(cfg, func(transport.Memory) error { return nil })
		},
	}))
	comms := commtest.OnHosts(t, list, func(r int) ringo.Config {
		cfg := ringo.Config{Net: "card", HostID: fmt.Sprint("host", r)}
		if r == 2 {
			cfg.IBDevices = "card1"
		}
		return cfg
	})
	const (
		direct = "different hosts; slots on the GPU, by dma-buf: GPUDirect"
		pinned = "different hosts; slots in pinned memory, without copies; not on the GPU: card1, over which data go, is " +
			"SYS from the GPU and may be PHB"
	)
	for r, want := range [][]string{{"rank 1 (" + direct, "rank 2 (" + pinned}, {"rank 0 (" + direct, "rank 2 (" + pinned},
		{"ranks 0, 1 (" + pinned}} {
		for _, note := range want {
			require.Contains(t, strings.Join(comms[r].Paths(), "\n"), note)
		}
	}
	calls := append(commtest.EveryCall(ranks, 1001, ringo.Int32, ringo.Sum),
		ringo.Call{Kind: ringo.KindAlltoAll, Count: 1001, Type: ringo.Uint8})
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return commtest.CheckCalls(c, calls) }))
}

// A peer that does not come, or does not receive, is named when the time is over, and an abort ends what waits,
// where cards move the slots too.
func TestDevicePlacedFails(t *testing.T) {
	withCards(t, func(int, transport.Memory) error { return nil })
	for name, call := range map[string]ringo.Call{
		"from rank 1 over ": {Kind: ringo.KindAllReduce, Op: ringo.Sum},
		"to rank 1 over ":   {Kind: ringo.KindSend, Peer: 1},
	} {
		list := gputest.GPUs(t, 2, gputest.NVLink())
		comms := commtest.OnDevices(t, list, ringo.Config{Transport: "card", Timeout: 300 * time.Millisecond})
		require.Contains(t, strings.Join(comms[0].Paths(), "\n"), "bridge over card with rank 1")
		x := commtest.Alloc(t, list[0], make([]byte, 16))
		call.In, call.Count, call.Type = x, x.Len()/4, ringo.Float32
		if call.Kind == ringo.KindAllReduce {
			call.Out = x
		}
		for range 64 { // more than there are slots
			if comms[0].Do(&call) != nil {
				break // the time is over already
			}
		}
		err := comms[0].Synchronize(call.Stream)
		require.ErrorIs(t, err, ringo.ErrTimeout)
		require.ErrorContains(t, err, name)
	}
	list := gputest.GPUs(t, 2, gputest.NVLink())
	comms := commtest.OnDevices(t, list, ringo.Config{Transport: "card", Timeout: time.Minute})
	x := commtest.Alloc(t, list[0], make([]byte, 4096))
	require.NoError(t, comms[0].Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 1024,
		Type: ringo.Float32}))
	comms[1].Abort(errors.New("enough"))
	require.ErrorContains(t, comms[0].Synchronize(0), "enough")
}
