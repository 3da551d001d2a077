package ringo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/race"
	"github.com/ringo-go/ringo/internal/secure/securetest"
)

// rankMain is a rank of its own process: the test binary started again.
func rankMain(what string) int {
	if work := gpuWork[what]; work != nil {
		return gpuMain(work)
	}
	c, err := OpenEnv(context.Background(), Config{})
	if err != nil {
		fmt.Println("error:", err)
		return 2
	}
	defer c.Close()
	switch what {
	case "check":
		return checkMain(c)
	case "recover":
		return recoverMain(c)
	case "loop":
		fmt.Println("ready")
		x := make([]float32, 50000)
		for i := 0; ; i++ {
			if i == 10 {
				fmt.Println("under way")
			}
			if err := AllReduce(c, x, Avg); err != nil {
				fmt.Println("error:", err)
				if errors.Is(err, ErrPeer) {
					return 3
				}
				return 4
			}
		}
	}
	return 5
}

// checkMain makes a few collectives of all sizes and says over what.
func checkMain(c *Comm) int {
	for _, count := range []int{0, 1, 10, 1000, 100_000, 1_000_000} {
		x := make([]int64, count)
		for i := range x {
			x[i] = int64(i * (c.Rank() + 1))
		}
		if err := AllReduce(c, x, Sum); err != nil {
			fmt.Println("error:", err)
			return 3
		}
		n := c.Size()
		for i := range x {
			if x[i] != int64(i*n*(n+1)/2) {
				fmt.Println("wrong at", count, i)
				return 4
			}
		}
		y := make([]int64, n*count)
		if err := AllGather(c, y, x); err != nil {
			fmt.Println("error:", err)
			return 3
		}
	}
	fmt.Println("fine over", c.Transport((c.Rank()+1)%c.Size()))
	return 0
}

// meeting is an ID that is served until the end of the test.
func meeting(t *testing.T) bootstrap.ID {
	id, err := NewID("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { bootstrap.Stop(id) })
	return id
}

// processes starts n ranks as processes of this test binary.
func processes(t *testing.T, n int, what string, env ...string) []*exec.Cmd {
	return processesOn(t, 0, n, what, env...)
}

// processesOn starts them in equal parts on so many hosts, by name.
func processesOn(t *testing.T, hosts, n int, what string, env ...string) []*exec.Cmd {
	id := meeting(t)
	cmds := make([]*exec.Cmd, n)
	for r := range n {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "RINGO_TEST_RANK="+what, "RINGO_COMM_ID="+id.String(),
			fmt.Sprint("RINGO_RANK=", r), fmt.Sprint("RINGO_SIZE=", n))
		cmd.Env = append(cmd.Env, env...)
		if hosts > 0 {
			cmd.Env = append(cmd.Env, fmt.Sprint("RINGO_HOSTID=host", r*hosts/n))
		}
		out := new(transcript)
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

// A transcript is what a process has written so far.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (x *transcript) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.Write(b)
}

func (x *transcript) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.String()
}

// await returns when the process has written a text.
func await(t *testing.T, cmd *exec.Cmd, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(output(cmd), text) }, 30*time.Second, time.Millisecond, text)
}

// Two nodes of two ranks, by name: hierarchy, shared memory inside and sockets
// between.
func TestTwoNodes(t *testing.T) {
	id := meeting(t)
	cmds := make([]*exec.Cmd, 4)
	for r := range cmds {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "RINGO_TEST_RANK=check", "RINGO_COMM_ID="+id.String(), "RINGO_SIZE=4",
			fmt.Sprint("RINGO_RANK=", r), fmt.Sprint("NCCL_HOSTID=node", r/2), "RINGO_DEBUG=INFO", "RINGO_SOCKET_IFNAME=lo")
		cmd.Stdout, cmd.Stderr = new(transcript), new(transcript)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill() })
		cmds[r] = cmd
	}
	for r, cmd := range cmds {
		require.NoError(t, cmd.Wait(), "rank %d: %s", r, output(cmd))
		require.Contains(t, output(cmd), "fine over "+[]string{"shm", "socket"}[r%2])
		log := fmt.Sprint(cmd.Stderr)
		require.Contains(t, log, "different hosts")
	}
}

// A network that is insisted on and is not here ends all ranks soon, with a sentence that says who
// lacks what and what to change; in a list the next
// one is taken, and one line says why.
func TestNetworkOfProcesses(t *testing.T) {
	start := time.Now()
	for r, cmd := range processes(t, 2, "check", "NCCL_NET=nothing") {
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Wait(), &exit, "rank %d: %s", r, output(cmd))
		require.Equal(t, 2, exit.ExitCode())
		require.Regexp(t, `no network: NCCL_NET asks for nothing alone: not nothing \(ranks 0 to 1 on .*: .+\); unset NCCL_NET to have`, output(cmd))
	}
	require.Less(t, time.Since(start), race.Soon(10*time.Second))
	for _, env := range []string{"RINGO_NET=nothing,Socket", "RINGO_NET="} {
		for r, cmd := range processesOn(t, 2, 2, "check", env, "RINGO_IB_DISABLE=1", "RINGO_NET_PLUGIN=none", "RINGO_SOCKET_IFNAME=lo", "RINGO_DEBUG=INFO") {
			require.NoError(t, cmd.Wait(), "rank %d: %s", r, output(cmd))
			require.Contains(t, output(cmd), "fine over socket")
			require.Regexp(t, `network socket \(lo\); not \w+ \(rank 0 on host0, rank 1 on host1: `, output(cmd))
		}
	}
}

// Processes on several hosts meet and talk over TLS, by the job's key and by certificates; a network
// that cannot encrypt is not taken. If only one of them has it, all say what to set.
func TestTLSOfProcesses(t *testing.T) {
	f := securetest.Make(t, "job")
	by := [][]string{
		{"RINGO_TLS=1", "RINGO_SOCKET_IFNAME=lo", "RINGO_DEBUG=INFO", "RINGO_NET=IB,Socket"},
		{"RINGO_TLS_CERT=" + f.Cert, "RINGO_TLS_KEY=" + f.Key, "RINGO_TLS_CA=" + f.CA, "RINGO_SOCKET_IFNAME=lo", "RINGO_DEBUG=INFO", "RINGO_NET=IB,Socket"},
	}
	for i, env := range by {
		tls, err := bootstrap.TLSFromEnv(environment(env...))
		require.NoError(t, err)
		id, err := bootstrap.NewID(bootstrap.ListenOptions{Addr: "127.0.0.1:0", TLS: tls})
		require.NoError(t, err)
		defer bootstrap.Stop(id)
		for r, cmd := range processesOn(t, 2, 2, "check", append(env, "RINGO_COMM_ID="+id.String())...) {
			require.NoError(t, cmd.Wait(), "rank %d: %s", r, output(cmd))
			require.Contains(t, output(cmd), "fine over socket")
			require.Contains(t, output(cmd), "network socket (lo) over TLS ("+[]string{"by the job's key", "by certificates"}[i]+"); not ib (")
			require.Contains(t, output(cmd), "RINGO_TLS is on, and it moves data in clear")
		}
	}
	ids := bootstrap.Local(2)
	var errs [2]error
	var both sync.WaitGroup
	for r, g := range ids {
		both.Go(func() {
			cfg, err := Config{Rank: r, Size: 2, TLS: r == 1}.fill(environment())
			if err == nil {
				_, err = open(t.Context(), cfg, g)
			}
			errs[r] = err
		})
	}
	both.Wait()
	for _, err := range errs {
		require.ErrorContains(t, err, "give all ranks the same RINGO_TLS")
	}
}

func output(cmd *exec.Cmd) string { return fmt.Sprint(cmd.Stdout) }

func TestProcesses(t *testing.T) {
	for _, tc := range []struct{ name, over, env string }{
		{"shm", "shm", ""},
		{"shm directory", "shm", "RINGO_SHM_DIR=/dev/shm"},
		{"small shm", "socket", "RINGO_SHM_DIR=/proc"}, // no room at all there
		{"unix", "socket", "RINGO_TRANSPORT=socket"},
		{"tcp", "socket", "NCCL_SHM_DISABLE=1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := []string{tc.env}
			if tc.name == "tcp" {
				env = append(env, "RINGO_SOCKET_NETWORK=tcp")
			}
			for r, cmd := range processes(t, 3, "check", env...) {
				err := cmd.Wait()
				require.NoError(t, err, "rank %d: %s", r, output(cmd))
				require.Contains(t, output(cmd), "fine over "+tc.over)
			}
		})
	}
}

// A rank that is killed ends all others within 2 s, and they name it.
func TestKilled(t *testing.T) {
	for _, transport := range []string{"shm", "socket"} {
		for _, victim := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s/%d", transport, victim), func(t *testing.T) {
				cmds := processes(t, 4, "loop", "RINGO_TRANSPORT="+transport)
				for _, cmd := range cmds {
					await(t, cmd, "ready")
				}
				time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
				require.NoError(t, cmds[victim].Process.Signal(syscall.SIGKILL))
				start := time.Now()
				for r, cmd := range cmds {
					err := cmd.Wait()
					if r == victim {
						continue
					}
					var exit *exec.ExitError
					require.ErrorAs(t, err, &exit, "rank %d", r)
					require.Equal(t, 3, exit.ExitCode(), "rank %d: %s", r, output(cmd))
					require.Contains(t, output(cmd), fmt.Sprintf("rank %d", victim))
					require.Contains(t, output(cmd), "AllReduce", "whether in it or before it")
				}
				require.Less(t, time.Since(start), race.Soon(2*time.Second))
			})
		}
	}
}

// Who does not come is named.
func TestMissingRank(t *testing.T) {
	id := meeting(t)
	_, err := Open(context.Background(), Config{ID: &id, Rank: 1, Size: 3, JoinTimeout: 300 * time.Millisecond})
	require.ErrorContains(t, err, "0, 2")
	require.ErrorContains(t, err, "RINGO_JOIN_TIMEOUT")
}
