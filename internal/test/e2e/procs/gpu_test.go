package ringo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/cudaemu"
	"github.com/ringo-go/ringo/internal/gputest"
)

// gpuWork is what ranks with a GPU do in processes of their own, by name; they
// return the exit code.
var gpuWork = map[string]func(c *Comm) int{"gpuloop": gpuLoop, "gpucheck": gpuCheck, "gpufootprint": gpuFootprint}

// gpuMain is such a rank. Every process has all devices.
func gpuMain(work func(c *Comm) int) int {
	m, err := openGPUs()
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	rank, err := strconv.Atoi(os.Getenv("RINGO_RANK"))
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	d, _ := m.Device(rank % m.Count())
	fmt.Println("opening")
	c, err := OpenEnv(context.Background(), Config{Device: d})
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	fmt.Println("open")
	code := work(c)
	if err := errors.Join(usable(d), c.Close(), usable(d), m.Close()); err != nil {
		fmt.Println("afterwards:", err)
		code = 5
	}
	return code
}

func openGPUs() (*gpu.Machine, error) {
	if gputest.OnGPU() {
		return gpu.Open(gpu.Options{Library: os.Getenv("RINGO_CUDA_LIBRARY")})
	}
	rdma := os.Getenv("RINGO_TEST_NET_DMABUF")
	cfg := cudaemu.Config{Devices: 4, RDMA: rdma != "", Flushes: rdma != "ordered"}
	if gputest.Required("pcie") {
		cfg.Link = gputest.PCIe
	}
	d, err := cudaemu.New(cfg)
	if err != nil {
		return nil, err
	}
	return gpu.Of(d)
}

// gpuLoop works until a peer dies.
func gpuLoop(c *Comm) int {
	d := c.Device()
	x, err := d.Alloc(40000)
	if err == nil {
		err = d.Write(x, make([]byte, x.Len()))
	}
	for err == nil {
		for i := 0; i < 3 && err == nil; i++ {
			err = c.Do(&Call{Kind: KindAllReduce, In: x, Out: x, Count: 10000, Type: Float32, Op: Avg})
		}
		if err == nil {
			err = c.Synchronize(0)
		}
	}
	fmt.Println("error:", err)
	if err := d.Free(x); err != nil {
		fmt.Println("free:", err)
		return 5
	}
	if errors.Is(err, ErrPeer) {
		return 3
	}
	return 4
}

// gpuCheck makes every call.
func gpuCheck(c *Comm) int {
	for _, count := range []int{0, 3, 1001} {
		if err := checkCalls(c, everyCall(c.Size(), count, Int32, Sum)); err != nil {
			fmt.Println("error:", err)
			return 3
		}
		f := FootprintOf(c)
		if err := errors.Join(f.Suspend(), f.Resume()); err != nil {
			fmt.Println("error:", err)
			return 3
		}
	}
	fmt.Println("fine:", strings.Join(c.Paths(), ", "))
	return 0
}

// Each rank is a process; RINGO_HOSTID makes hosts of them.
func TestDeviceProcesses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ranks int
		env   []string
		path  []string // of each rank
	}{
		{"p2p", 2, nil, []string{"p2p with rank 1", "p2p with rank 0"}},
		{"pcie", 2, []string{"REQUIRE=pcie"}, []string{"pcie with rank 1 (PCIe: lines of 128 bytes may tear there, so they have digests)", "pcie with rank 0"}},
		{"host memory", 2, []string{"NCCL_P2P_DISABLE=1"}, []string{"host memory with rank 1 (rank 0: NCCL_P2P_DISABLE is set)", "host memory with rank 0"}},
		{"unix", 2, []string{"RINGO_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1"},
			[]string{"bridge over socket with rank 1 (rank 0: RINGO_P2P_DISABLE is set; rank 0: NCCL_SHM_DISABLE is set)", "bridge over socket with rank 0"}},
		{"two hosts", 4, []string{"RINGO_SOCKET_IFNAME=lo"}, []string{"bridge over socket with ranks 2, 3 (different hosts)", "p2p with rank 0", "p2p with rank 3", "p2p with rank 2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if gputest.OnGPU() {
				if tc.name == "pcie" {
					t.Skip("a GPU's links are what they are")
				}
				devices(t, tc.ranks)
			}
			hosts := 1
			if tc.ranks == 4 {
				hosts = 2
			}
			for r, cmd := range processesOn(t, hosts, tc.ranks, "gpucheck", tc.env...) {
				require.NoError(t, cmd.Wait(), "rank %d: %s", r, output(cmd))
				want := tc.path[r]
				if gputest.Required("pcie") {
					want = strings.ReplaceAll(want, "p2p with", "pcie with")
				}
				require.Contains(t, output(cmd), "GPU memory: "+want)
			}
		})
	}
}
