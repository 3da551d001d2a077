//go:build linux && (amd64 || arm64)

package ctest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/cmd/why/ras"
	"github.com/ringo-go/ringo/internal/test/ctest"
	"github.com/ringo-go/ringo/internal/test/freeport"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestRAS lets a rank of 4 processes stand still, be stopped or be killed, and asks RAS. Whichever process answers,
// ringo why names that rank, from JSON, and from text where the text tells which ranks have called less. A stopped
// process shares the port, and keeps nobody from an answer.
func TestRAS(t *testing.T) {
	const ranks, victim = 4, 2
	p := ctest.Program(t, "hung", false)
	for _, mode := range tier.Some(2, []string{"late", "stopped", "killed"}) {
		t.Run(mode, func(t *testing.T) {
			addr := freeport.Addr(t)
			cmds, inputs, texts := begin(t, p, mode, victim, ranks, addr)
			require.Eventually(t, func() bool { return stands(addr, mode, ranks) }, 3*tier.Patience, 10*time.Millisecond)
			blames := func(r *ras.Report) {
				a := ras.Judge(r.Job("RAS"), []ras.Report{*r, *r})
				require.Equal(t, []int{victim}, a.Culprits, a.Sentence)
				require.Regexp(t, map[string]string{"late": `^rank 2 \(process .*\) never called AllReduce #4`,
					"stopped": "^rank 2 ", "killed": "^rank 2 "}[mode], a.Sentence)
			}
			for range 2 * ranks { // to be answered by several processes
				r, err := ras.Ask(t.Context(), addr)
				require.NoError(t, err)
				blames(r)
				text := status(t, addr)
				all, err := ras.Parse([]byte(text))
				require.NoError(t, err, text)
				if word := map[string]string{"stopped": "INCOMPLETE", "killed": "DEAD"}[mode]; word != "" {
					require.Contains(t, text, word+"\n")
					require.Contains(t, text, fmt.Sprintf("  Rank %d -- GPU 0 managed by process %d on node ", victim,
						cmds[victim].Process.Pid))
					continue
				}
				blames(&all[len(all)-1])
			}
			for rank, cmd := range cmds {
				require.NoError(t, inputs[rank].Close())
				if mode == "stopped" && rank == victim {
					require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
				}
			}
			for rank, cmd := range cmds {
				if err := cmd.Wait(); rank != victim || mode != "killed" {
					require.NoError(t, err, "rank %d: %s", rank, &texts[rank])
					require.Equal(t, "ok\n", texts[rank].String(), "rank %d", rank)
				}
			}
			_, err := net.Dial("tcp", addr)
			require.Error(t, err, "the job is over")
		})
	}
}

// begin starts the ranks of a job that is to stand still. texts are their outputs.
func begin(t *testing.T, program, mode string, victim, ranks int, addr string) (cmds []*exec.Cmd, inputs []io.Closer,
	texts []bytes.Buffer) {
	meet := filepath.Join(t.TempDir(), "id")
	cmds, inputs, texts = make([]*exec.Cmd, ranks), make([]io.Closer, ranks), make([]bytes.Buffer, ranks)
	for rank := range ranks {
		cmd := exec.Command(program, mode, strconv.Itoa(victim), strconv.Itoa(rank), strconv.Itoa(ranks), meet)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(ctest.OnHost(), "NCCL_RAS_ADDR="+addr), &texts[rank], &texts[rank]
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		cmds[rank], inputs[rank] = cmd, in
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	return cmds, inputs, texts
}

// Communicators of ringo.h answer too.
func TestRASOfHosts(t *testing.T) {
	const ranks, victim = 3, 1
	addr := freeport.Addr(t)
	cmds, inputs, texts := begin(t, ctest.Program(t, "hosts", false), "late", victim, ranks, addr)
	var r *ras.Report
	require.Eventually(t, func() (ok bool) {
		r, ok = of(addr, 1, ranks)
		return ok && waiting(&r.Comms[0]) == ranks-1
	}, 3*tier.Patience, 10*time.Millisecond)
	a := ras.Judge(r.Job("RAS"), []ras.Report{*r, *r})
	require.Equal(t, []int{victim}, a.Culprits, a.Sentence)
	require.Regexp(t, `^rank 1 \(process .*\) never called AllReduce #4`, a.Sentence)
	for _, in := range inputs {
		require.NoError(t, in.Close())
	}
	for rank, cmd := range cmds {
		require.NoError(t, cmd.Wait(), "rank %d: %s", rank, &texts[rank])
		require.Equal(t, "ok\n", texts[rank].String(), "rank %d", rank)
	}
	_, err := net.Dial("tcp", addr)
	require.Error(t, err, "the job is over")
}

// stands reports whether the job has come to its standstill.
func stands(addr, mode string, ranks int) bool {
	r, ok := of(addr, 3, ranks)
	if !ok {
		return false
	}
	first := &r.Comms[0]
	if mode == "killed" {
		return len(first.Missing) == 1 && first.Missing[0].Status.Dead
	}
	return waiting(first) == ranks-1 && (mode == "late" || len(first.Missing) == 1 && first.Missing[0].Status.Silent)
}

// of is RAS's answer about a job. ok reports whether the job has that many communicators, and the first one all ranks.
func of(addr string, comms, ranks int) (r *ras.Report, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience) // a process may stop as it answers
	defer cancel()
	r, err := ras.Ask(ctx, addr)
	return r, err == nil && len(r.Comms) == comms && r.Comms[0].Size == ranks
}

// waiting is how many ranks have called the fourth AllReduce.
func waiting(c *ras.Comm) (n int) {
	for _, r := range c.Ranks {
		if r.Counts["AllReduce"] == 4 {
			n++
		}
	}
	return n
}

// TestRASElsewhere: a job runs well where another program has the port, and where RAS is switched off.
func TestRASElsewhere(t *testing.T) {
	p := ctest.Program(t, "collectives", false)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, setting := range tier.Some(3, []string{"NCCL_RAS_ADDR=" + l.Addr().String(), "NCCL_RAS_ADDR=nowhere",
		"NCCL_RAS_ENABLE=0"}) {
		t.Run(setting, func(t *testing.T) { succeed(t, append(ctest.OnHost(), setting), 2, p, "process") })
	}
}

// TestWhyAsksRAS runs the command "ringo why" against a job that stands still.
func TestWhyAsksRAS(t *testing.T) {
	tier.Heavy(t)
	ringo, p := ctest.Ringo(t), ctest.Program(t, "hung", false)
	addr := freeport.Addr(t)
	begin(t, p, "late", 1, 3, addr)
	require.Eventually(t, func() bool { return stands(addr, "late", 3) }, 3*tier.Patience, 10*time.Millisecond)
	text, err := exec.Command(ringo, "why", "-ras", addr, "-for", "10ms").CombinedOutput()
	exit := new(exec.ExitError)
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode(), "%s", text)
	require.Regexp(t, `^rank 1 \(process .*\) never called AllReduce #4`, string(text))
}

// status asks RAS for text, as ncclras does.
func status(t *testing.T, addr string) string {
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(tier.Patience))
	fmt.Fprint(c, "CLIENT PROTOCOL 2\nTIMEOUT 5\nSET FORMAT text\nVERBOSE STATUS\n")
	b, err := io.ReadAll(c)
	require.NoError(t, err)
	return strings.TrimPrefix(string(b), "SERVER PROTOCOL 2\nOK\nOK\n")
}
