//go:build linux && (amd64 || arm64) && !ringo_nogpu

package gpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/dl"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Ranks of two hosts, by name, use the network plugin that NCCL_NET_PLUGIN names. Where it
// fails on one rank, or is not there, all use the next network.
func TestNetworkPlugin(t *testing.T) {
	tier.Long(t)
	gcc := need.Tool(t, "gcc")
	const source = "../../../../transport/plugin/testdata/net.c"
	if _, err := os.Stat(source); err != nil {
		t.Skip("the source is not here")
	}
	file := filepath.Join(t.TempDir(), "libnccl-net-test.so")
	out, err := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-o", file, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, c := range tier.Some(3, []struct{ name, over, says, env string }{
		{"plugin", "plugin", "network plugin (test0, test1)", ""},
		{"slow", "plugin", "network plugin (test0, test1)", "RINGO_TEST_NET_DELAY=2"},
		{"by its name", "plugin", "network test (test0, test1)", "NCCL_NET=Test"},
		{"init fails on one rank", "socket",
			"not plugin (rank 1 on host1: network plugin libnccl-net-test.so (v11): init: system error (2);",
			"RINGO_TEST_NET=init@1"},
		{"its trial fails on one rank", "socket",
			"network plugin libnccl-net-test.so (v11): regMr: device 0 test0: rank 1: system error (2);",
			"RINGO_TEST_NET=regMr@1"},
		{"another name", "socket", "not other (rank 0 on host0, rank 1 on host1: plugin libnccl-net-test.so is network Test)",
			"NCCL_NET=Other,Socket"},
		{"none", "socket", "not plugin (rank 0 on host0, rank 1 on host1: RINGO_NET_PLUGIN or NCCL_NET_PLUGIN is none)",
			"RINGO_NET_PLUGIN=none"},
	}) {
		t.Run(c.name, func(t *testing.T) {
			cmds := commtest.ProcessesOn(t, 2, 2, "check", "RINGO_DEBUG=INFO", "RINGO_SOCKET_IFNAME=lo", "NCCL_NET_PLUGIN="+file,
				c.env)
			for r, cmd := range cmds {
				require.NoError(t, cmd.Wait(), "rank %d: %s", r, commtest.Output(cmd))
				require.Contains(t, commtest.Output(cmd), "fine over "+c.over)
				require.Contains(t, commtest.Output(cmd), c.says)
			}
		})
	}
	t.Run("killed", func(t *testing.T) {
		cmds := commtest.ProcessesOn(t, 2, 2, "loop", "RINGO_SOCKET_IFNAME=lo", "NCCL_NET_PLUGIN="+file)
		for _, cmd := range cmds {
			commtest.Await(t, cmd, "under way")
		}
		require.NoError(t, cmds[1].Process.Kill())
		require.Error(t, cmds[0].Wait())
		require.Contains(t, commtest.Output(cmds[0]), "rank 1 died") // between two calls no path is named
	})
	t.Run("GPUs", func(t *testing.T) {
		const direct = "slots on the GPU, by dma-buf: GPUDirect"
		for _, c := range tier.Some(3, []struct{ env, slots string }{
			{"RINGO_TEST_NET_DMABUF=flushed", direct},
			{"RINGO_TEST_NET_DMABUF=ordered", direct},
			{"", "slots in pinned memory, without copies; not on the GPU: p2p: memory for network cards: the GPU lets no " +
				"network cards into its memory"},
		}) {
			if gputest.OnGPU() { // whose memory the plugin of the tests cannot map
				c.env, c.slots = "", "slots in pinned memory, without copies; not on the GPU: "
			}
			for r, cmd := range commtest.ProcessesOn(t, 2, 2, "gpucheck", "RINGO_SOCKET_IFNAME=lo", "NCCL_NET_PLUGIN="+file,
				c.env) {
				require.NoError(t, cmd.Wait(), "rank %d: %s", r, commtest.Output(cmd))
				require.Contains(t, commtest.Output(cmd),
					fmt.Sprintf("GPU memory: bridge over plugin with rank %d (different hosts; %s", 1-r, c.slots))
			}
		}
	})
	t.Run("GPUDirect", func(t *testing.T) {
		if gputest.OnGPU() {
			t.Skip("the plugin of the tests cannot map a GPU's memory")
		}
		lib, err := dl.Open(file)
		require.NoError(t, err)
		set := func(name string, args ...uintptr) int {
			f, err := lib.Sym("net_test_" + name)
			require.NoError(t, err)
			return int(int32(dl.Call(f, args...)))
		}
		const host, dmaBuf = 1, 4
		set("device", 1, 1000, host|dmaBuf, 0, 0)
		set("flush", 1) // is a fault: the emulator's GPUs need none
		list := gputest.GPUs(t, 2, gputest.Emu(cudaemu.Config{Devices: 2, RDMA: true}))
		comms := commtest.OnHosts(t, list, func(r int) ringo.Config {
			return ringo.Config{Net: "plugin", NetPlugin: file, HostID: fmt.Sprint("host", r)}
		})
		require.Contains(t, strings.Join(comms[1].Paths(), "\n"),
			"GPU memory: bridge over plugin with rank 0 (different hosts; slots on the GPU, by dma-buf: GPUDirect)")
		calls := []ringo.Call{{Kind: ringo.KindBarrier},
			{Kind: ringo.KindAllReduce, Count: 3000, Type: ringo.Int32, Op: ringo.Sum},
			{Kind: ringo.KindAlltoAll, Count: 1001, Type: ringo.Uint8}}
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error { return commtest.CheckCalls(c, calls) }))
		require.Positive(t, set("dmabufs"))
		require.Zero(t, set("faults"))
	})
}
