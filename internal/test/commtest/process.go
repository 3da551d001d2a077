package commtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/gpu"
	"github.com/ringo-go/ringo/internal/emu/cudaemu"
	"github.com/ringo-go/ringo/internal/emu/weakmem"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/internal/test/transcript"
)

// A Work is what a rank in a process of its own does. It returns the exit code.
type Work = func(c *ringo.Comm) int

// Main is a TestMain. In a process that Processes has started it is a rank with a Work: one of those given, on the host
// or with a GPU, or one that all packages have, "check" and "loop" on the host, "gpucheck" with a GPU.
func Main(m *testing.M, onHost, onGPU map[string]Work) {
	what := os.Getenv("RINGO_TEST_RANK")
	if what == "" {
		if !tier.Pairs() {
			_ = flag.Set("rapid.checks", "20")
		}
		goleak.VerifyTestMain(m)
	}
	host, gpu := map[string]Work{"check": check, "loop": loop}, map[string]Work{"gpucheck": gpuCheck}
	maps.Copy(host, onHost)
	maps.Copy(gpu, onGPU)
	if work := gpu[what]; work != nil {
		os.Exit(gpuMain(work))
	}
	os.Exit(hostMain(host[what]))
}

// hostMain is a rank on host memory.
func hostMain(work Work) int {
	c, err := ringo.OpenEnv(context.Background(), ringo.Config{})
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	defer c.Close()
	return work(c)
}

// Alone has the process of each rank see one GPU, that of its number, as launchers do with
// CUDA_VISIBLE_DEVICES. Else every process has all devices.
const Alone = "RINGO_TEST_GPUS=alone"

// gpuMain is a rank with a GPU.
func gpuMain(work Work) int {
	rank, err := strconv.Atoi(os.Getenv("RINGO_RANK"))
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	m, err := openGPUs(rank)
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	d, _ := m.Device(rank % m.Count())
	fmt.Println("opening")
	c, err := ringo.OpenEnv(context.Background(), ringo.Config{Device: d})
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	fmt.Println("open")
	code := work(c)
	if err := errors.Join(Usable(d), c.Close(), Usable(d), m.Close()); err != nil {
		fmt.Println("afterwards:", err)
		code = 5
	}
	if faults.Load() > 0 && code == 0 {
		code = 6
	}
	return code
}

// faults are what the emulator has found in this process, races with others too.
var faults atomic.Int32

func openGPUs(rank int) (*gpu.Machine, error) {
	if gputest.OnGPU() {
		return gpu.Open(gpu.Options{Library: os.Getenv("RINGO_CUDA_LIBRARY")})
	}
	rdma := os.Getenv("RINGO_TEST_NET_DMABUF")
	cfg := cudaemu.Config{Devices: 4, RDMA: rdma != "", Flushes: rdma != "ordered",
		Report: func(f *weakmem.Fault) bool { fmt.Println("fault:", f); faults.Add(1); return true }}
	if need.Required("pcie") {
		cfg.Link = gputest.PCIe
	}
	if os.Getenv("RINGO_TEST_GPUS") == "alone" {
		cfg.Visible = []int{rank}
	}
	d, err := cudaemu.New(cfg)
	if err != nil {
		return nil, err
	}
	return gpu.Of(d)
}

// Processes starts n ranks as processes of this test binary.
func Processes(t *testing.T, n int, what string, env ...string) []*exec.Cmd {
	return ProcessesOn(t, 0, n, what, env...)
}

// ProcessesOn is Processes, with the ranks in equal parts on hosts that differ in their names alone.
func ProcessesOn(t *testing.T, hosts, n int, what string, env ...string) []*exec.Cmd {
	id := Meeting(t)
	cmds := make([]*exec.Cmd, n)
	for r := range n {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "RINGO_TEST_RANK="+what, "RINGO_COMM_ID="+id.String(),
			fmt.Sprint("RINGO_RANK=", r), fmt.Sprint("RINGO_SIZE=", n))
		cmd.Env = append(cmd.Env, env...)
		if slices.Contains(env, Alone) {
			cmd.Env = append(cmd.Env, fmt.Sprint("CUDA_VISIBLE_DEVICES=", r))
		}
		if hosts > 0 {
			cmd.Env = append(cmd.Env, fmt.Sprint("RINGO_HOSTID=host", r*hosts/n))
		}
		out := new(transcript.Transcript)
		cmd.Stdout, cmd.Stderr = out, out
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // again, maybe
			if t.Failed() {
				t.Logf("rank %d: %v: %s", r, cmd.ProcessState, out)
			}
		})
		cmds[r] = cmd
	}
	return cmds
}

// Await returns when the process has written a text.
func Await(t *testing.T, cmd *exec.Cmd, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(Output(cmd), text) }, 30*time.Second,
		time.Millisecond, text)
}

// Output is what the process has written so far.
func Output(cmd *exec.Cmd) string { return fmt.Sprint(cmd.Stdout) }
