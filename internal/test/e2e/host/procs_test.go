package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/securetest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Two nodes of two ranks, by name: hierarchy, shared memory inside and sockets
// between.
func TestTwoNodes(t *testing.T) {
	tier.Long(t)
	for r, cmd := range commtest.ProcessesOn(t, 2, 4, "check", "RINGO_DEBUG=INFO", "RINGO_SOCKET_IFNAME=lo") {
		require.NoError(t, cmd.Wait(), "rank %d: %s", r, commtest.Output(cmd))
		require.Contains(t, commtest.Output(cmd), "fine over "+[]string{"shm", "socket"}[r%2])
		require.Contains(t, commtest.Output(cmd), "different hosts")
	}
}

// If a rank lacks the only network that is allowed, all ranks end soon, with an error that names the
// rank, the lack and the remedy; of a list the next network is taken, and one line of the log says why.
func TestNetworkOfProcesses(t *testing.T) {
	start := time.Now()
	for r, cmd := range commtest.Processes(t, 2, "check", "NCCL_NET=nothing") {
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Wait(), &exit, "rank %d: %s", r, commtest.Output(cmd))
		require.Equal(t, 2, exit.ExitCode())
		require.Regexp(t, `no network: NCCL_NET asks for nothing alone: not nothing \(ranks 0 to 1 on .*: .+\); unset NCCL_NET to have`, commtest.Output(cmd))
	}
	require.Less(t, time.Since(start), tier.Patience)
	for _, env := range []string{"RINGO_NET=nothing,Socket", "RINGO_NET="} {
		for r, cmd := range commtest.ProcessesOn(t, 2, 2, "check", env, "RINGO_IB_DISABLE=1", "RINGO_NET_PLUGIN=none",
			"RINGO_SOCKET_IFNAME=lo", "RINGO_DEBUG=INFO") {
			require.NoError(t, cmd.Wait(), "rank %d: %s", r, commtest.Output(cmd))
			require.Contains(t, commtest.Output(cmd), "fine over socket")
			require.Regexp(t, `network socket \(lo\); not \w+ \(rank 0 on host0, rank 1 on host1: `, commtest.Output(cmd))
		}
	}
}

// Processes on several hosts meet and talk over TLS, by the job's key and by certificates; a network
// that cannot encrypt is not taken. If only one of them has it, all say what to set.
func TestTLSOfProcesses(t *testing.T) {
	f := securetest.Make(t, "job")
	by := [][]string{
		{"RINGO_TLS=1", "RINGO_SOCKET_IFNAME=lo", "RINGO_DEBUG=INFO", "RINGO_NET=IB,Socket"},
		{"RINGO_TLS_CERT=" + f.Cert, "RINGO_TLS_KEY=" + f.Key, "RINGO_TLS_CA=" + f.CA, "RINGO_SOCKET_IFNAME=lo",
			"RINGO_DEBUG=INFO", "RINGO_NET=IB,Socket"},
	}
	for i, env := range by {
		tls, err := bootstrap.TLSFromEnv(commtest.Environment(env...))
		require.NoError(t, err)
		id, err := bootstrap.NewID(bootstrap.ListenOptions{Addr: "127.0.0.1:0", TLS: tls})
		require.NoError(t, err)
		defer bootstrap.Stop(id)
		for r, cmd := range commtest.ProcessesOn(t, 2, 2, "check", append(env, "RINGO_COMM_ID="+id.String())...) {
			require.NoError(t, cmd.Wait(), "rank %d: %s", r, commtest.Output(cmd))
			require.Contains(t, commtest.Output(cmd), "fine over socket")
			require.Contains(t, commtest.Output(cmd),
				"network socket (lo) over TLS ("+[]string{"by the job's key", "by certificates"}[i]+"); not ib (")
			require.Contains(t, commtest.Output(cmd), "RINGO_TLS is on, and it moves data in clear")
		}
	}
	_, errs := commtest.OpenAll(t, 2, func(r int) ringo.Config { return ringo.Config{TLS: r == 1} })
	for _, err := range errs {
		require.ErrorContains(t, err,
			"set RINGO_TLS, and RINGO_TLS_CERT, _KEY and _CA if it is by certificates, for all ranks or for none")
	}
}

func TestProcesses(t *testing.T) {
	tier.Long(t)
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
			for r, cmd := range commtest.Processes(t, 3, "check", env...) {
				err := cmd.Wait()
				require.NoError(t, err, "rank %d: %s", r, commtest.Output(cmd))
				require.Contains(t, commtest.Output(cmd), "fine over "+tc.over)
			}
		})
	}
}

// A rank that is killed ends all others within 2 s, and they name it.
func TestKilled(t *testing.T) {
	for _, transport := range []string{"shm", "socket"} {
		for _, victim := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s/%d", transport, victim), func(t *testing.T) {
				cmds := commtest.Processes(t, 4, "loop", "RINGO_TRANSPORT="+transport)
				for _, cmd := range cmds {
					commtest.Await(t, cmd, "ready")
				}
				time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
				commtest.Kill(t, cmds, victim, fmt.Sprintf("rank %d", victim), "AllReduce") // whether in it or before it
			})
		}
	}
}

// The error names a rank that does not come.
func TestMissingRank(t *testing.T) {
	id := commtest.Meeting(t)
	_, err := ringo.Open(context.Background(),
		ringo.Config{ID: &id, Rank: 1, Size: 3, JoinTimeout: 300 * time.Millisecond})
	require.ErrorContains(t, err, "0, 2")
	require.ErrorContains(t, err, "RINGO_JOIN_TIMEOUT")
}

// partMain is a rank of TestNetnsSplit.
func partMain(c *ringo.Comm) int {
	part, err := c.Split(context.Background(), 0, -c.Rank())
	if err != nil {
		fmt.Println("error:", err)
		return 3
	}
	defer part.Close()
	x := []int32{int32(part.Rank())}
	if err := ringo.AllReduce(part, x, ringo.Sum); err != nil {
		fmt.Println("error:", err)
		return 4
	}
	fmt.Println("all of the part:", x[0])
	return 0
}
