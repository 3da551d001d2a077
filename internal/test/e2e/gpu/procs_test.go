package gpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/mem"
)

// A process that is killed while it opens its communicator or afterwards ends the
// others within 2 s, and they name it; their GPUs are usable afterwards. One that
// dies before it has met the others is missed when the time to join is over.
func TestDeviceKilled(t *testing.T) {
	tier.Long(t)
	env := map[string][]string{
		"p2p": nil, "pcie": {"REQUIRE=pcie"}, "host memory": {"RINGO_P2P_DISABLE=1"},
		"tcp": {"RINGO_TRANSPORT=socket", "RINGO_SOCKET_NETWORK=tcp", "RINGO_SOCKET_IFNAME=lo"},
	}
	if gputest.OnGPU() {
		gputest.GPUs(t, 2)
		delete(env, "pcie") // a GPU's links are what they are
	}
	for name, env := range env {
		for round, moment := range []string{"opening", "open", "open"} {
			if first, some := map[string]int{"p2p": 0, "host memory": 1}[name]; (!some || round != first) && !tier.Full() {
				continue
			}
			t.Run(fmt.Sprint(name, "/", round, " ", moment), func(t *testing.T) {
				n := tier.Count(2, 3)
				cmds := commtest.Processes(t, n, "gpuloop", append(env, "RINGO_JOIN_TIMEOUT=10s")...)
				victim := rand.IntN(n)
				for _, cmd := range cmds {
					commtest.Await(t, cmd, moment)
				}
				time.Sleep(time.Duration(20+rand.IntN(400)) * time.Millisecond)
				require.NoError(t, cmds[victim].Process.Signal(syscall.SIGKILL))
				start := time.Now()
				missed := false
				for r, cmd := range cmds {
					err := cmd.Wait()
					if r == victim {
						continue
					}
					var exit *exec.ExitError
					require.ErrorAs(t, err, &exit, "rank %d", r)
					if !strings.Contains(commtest.Output(cmd), "Open: ") { // so early
						require.Equal(t, 3, exit.ExitCode(), "rank %d: %s", r, commtest.Output(cmd))
					}
					if strings.Contains(commtest.Output(cmd), fmt.Sprintf("did not come within 10s: %d ", victim)) {
						missed = true
						continue
					}
					require.Contains(t, commtest.Output(cmd), fmt.Sprintf("rank %d died", victim))
				}
				if !missed {
					require.Less(t, time.Since(start), tier.Patience)
				}
			})
		}
	}
}

// average works in x until it fails.
func average(c *ringo.Comm, x mem.Region) (err error) {
	for err == nil {
		for i := 0; i < 3 && err == nil; i++ {
			err = c.Do(&ringo.Call{Kind: ringo.KindAllReduce, In: x, Out: x, Count: 10000, Type: ringo.Float32, Op: ringo.Avg})
		}
		if err == nil {
			err = c.Synchronize(0)
		}
	}
	return err
}

// gpuLoop works until a peer dies.
func gpuLoop(c *ringo.Comm) int {
	d := c.Device()
	x, err := d.Alloc(40000)
	if err == nil {
		err = d.Write(x, make([]byte, x.Len()))
	}
	if err == nil {
		err = average(c, x)
	}
	fmt.Println("error:", err)
	if err := d.Free(x); err != nil {
		fmt.Println("free:", err)
		return 5
	}
	if errors.Is(err, ringo.ErrPeer) {
		return 3
	}
	return 4
}

// Each rank is a process; RINGO_HOSTID makes hosts of them.
func TestDeviceProcesses(t *testing.T) {
	tier.Long(t)
	type test struct {
		name  string
		ranks int
		env   []string
		path  []string // of each rank
	}
	for _, tc := range tier.Some(4, []test{
		{"p2p", 2, nil, []string{"p2p with rank 1", "p2p with rank 0"}},
		{"pcie", 2, []string{"REQUIRE=pcie"},
			[]string{"pcie with rank 1 (PCIe: lines of 128 bytes may tear there, so they have digests)", "pcie with rank 0"}},
		{"host memory", 2, []string{"NCCL_P2P_DISABLE=1"},
			[]string{"host memory with rank 1 (rank 0: NCCL_P2P_DISABLE is set)", "host memory with rank 0"}},
		{"unix", 2, []string{"RINGO_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1"},
			[]string{"bridge over socket with rank 1 (rank 0: RINGO_P2P_DISABLE is set; rank 0: NCCL_SHM_DISABLE is set)",
				"bridge over socket with rank 0"}},
		{"two hosts", 4, []string{"RINGO_SOCKET_IFNAME=lo"},
			[]string{"bridge over socket with ranks 2, 3 (different hosts)", "p2p with rank 0", "p2p with rank 3",
				"p2p with rank 2"}},
	}) {
		t.Run(tc.name, func(t *testing.T) {
			if gputest.OnGPU() {
				if tc.name == "pcie" {
					t.Skip("a GPU's links are what they are")
				}
				gputest.GPUs(t, tc.ranks)
			}
			hosts := 1
			if tc.ranks == 4 {
				hosts = 2
			}
			for r, cmd := range commtest.ProcessesOn(t, hosts, tc.ranks, "gpucheck", tc.env...) {
				require.NoError(t, cmd.Wait(), "rank %d: %s", r, commtest.Output(cmd))
				require.Contains(t, commtest.Output(cmd), "GPU memory: "+tc.path[r])
			}
		})
	}
}
