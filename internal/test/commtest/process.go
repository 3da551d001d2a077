package commtest

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/internal/test/transcript"
)

// A Work is what a rank in a process of its own does. It returns the exit code.
type Work = func(c *ringo.Comm) int

// Main is a TestMain. In a process that Processes has started it is a rank on host memory with a Work: one of those
// given, or one that all packages have, "check" and "loop". Other ranks open their communicators themselves.
func Main(m *testing.M, works map[string]Work, others ...map[string]func() int) {
	what := os.Getenv("RINGO_TEST_RANK")
	if what == "" {
		if !tier.Pairs() {
			_ = flag.Set("rapid.checks", "20")
		}
		goleak.VerifyTestMain(m)
	}
	for _, list := range others {
		if work := list[what]; work != nil {
			os.Exit(work())
		}
	}
	all := map[string]Work{"check": check, "loop": loop}
	maps.Copy(all, works)
	os.Exit(hostMain(all[what]))
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

// Kill kills one of the processes. The others end within Patience by status 3, that of ErrPeer, and say these words.
func Kill(t *testing.T, cmds []*exec.Cmd, victim int, words ...string) {
	t.Helper()
	require.NoError(t, cmds[victim].Process.Kill())
	start := time.Now()
	for r, cmd := range cmds {
		err := cmd.Wait()
		if r == victim {
			continue
		}
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "rank %d", r)
		require.Equal(t, 3, exit.ExitCode(), "rank %d: %s", r, Output(cmd))
		for _, word := range words {
			require.Contains(t, Output(cmd), word)
		}
	}
	require.Less(t, time.Since(start), tier.Patience)
}
