package command

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSim(t *testing.T) {
	code, out, stderr := ringoHere("sim", "allreduce", "-np", "32", "-s", "8,1M", "--algo", "all", "--net", "nvlink", "--parts")
	require.Zero(t, code, stderr)
	require.GreaterOrEqual(t, strings.Count(out, "\n"), 2+2*2*2)
	require.Contains(t, out, "nodes of 8")
	require.Contains(t, out, "of which: latency")
}

// The nodes of a net count for the choice as those of --node do.
func TestSimNodes(t *testing.T) {
	rows := func(args ...string) string {
		t.Helper()
		code, out, stderr := ringoHere(append([]string{"sim", "allreduce", "-np", "64", "-s", "64M"}, args...)...)
		require.Zero(t, code, stderr)
		_, rows, _ := strings.Cut(out, "\n") // its first line repeats the question
		return strings.Join(strings.Fields(rows)[:20], " ")
	}
	own := rows("--net", "nvlink")
	require.NotContains(t, own, " doubling ")
	require.Equal(t, own, rows("--net", "nvlink", "--node", "8"))
	require.NotEqual(t, own, rows("--net", "nvlink", "--node", "4"))
	require.Contains(t, rows("--net", "shm"), " ring ", "all on one node")
}

// A slow link and a dead card make a collective slower, and only on several nodes.
func TestSimWeak(t *testing.T) {
	time := func(args ...string) float64 {
		t.Helper()
		code, out, stderr := ringoHere(append([]string{"sim", "allreduce", "-np", "32", "-s", "64M", "--algo", "hier"}, args...)...)
		require.Zero(t, code, stderr)
		us, err := strconv.ParseFloat(strings.Fields(strings.Split(out, "\n")[2])[2], 64)
		require.NoError(t, err)
		return us
	}
	whole := time("--net", "nvlink")
	require.Greater(t, time("--net", "nvlink", "--weak", "0,1:2"), 1.1*whole)
	require.Greater(t, time("--net", "nvlink", "--weak", "5:10"), 2*whole)
	require.Equal(t, whole, time("--net", "nvlink", "--weak", "5:1"))
	for _, bad := range []string{"5", "x:2", "32:2", "0:0.5", "0:x"} {
		code, _, stderr := ringoHere("sim", "allreduce", "-np", "32", "--weak", bad)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "--weak "+bad)
	}
}

// What would take hours is worked out from its beginning, and ends when it is told to.
func TestSimOfVeryManySteps(t *testing.T) {
	defer func(n int) { simSteps = n }(simSteps)
	simSteps = 200_000
	const huge = "500G"
	code, out, stderr := ringoHere("sim", "allreduce", "-np", "100", "-s", huge, "--algo", "oneshot", "--net", "shm", "--timeout", "1m")
	require.Zero(t, code, stderr)
	require.Regexp(t, `(?m)^# +from the first 10 of 1024000 pieces of the data; --exact carries out all$`, out)

	code, _, stderr = ringoHere("sim", "allreduce", "-np", "100", "-s", huge, "--algo", "oneshot", "--exact", "--timeout", "1ns")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "oneshot of 500G: sim: took longer than 1ns (--timeout)")
	code, _, stderr = ringoHere("sim", "allreduce", "--timeout", "-1s")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "cannot be negative")

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupt signal received"))
	var complaints bytes.Buffer
	code = ringoMain(ctx, []string{"sim", "allreduce", "-np", "100", "-s", huge, "--algo", "oneshot", "--exact"}, &bytes.Buffer{}, &complaints)
	require.Equal(t, 1, code)
	require.Contains(t, complaints.String(), "interrupt signal received")
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	p := &progress{w: &out, now: func() time.Time { return now }}
	for i := range 45 { // tenths of a second
		p.show("ring of 1G", float64(i)/100)
		now = now.Add(100 * time.Millisecond)
	}
	p.clear()
	require.Equal(t, []string{"ring of 1G: 20 % after 2s", "ring of 1G: 30 % after 3s", "ring of 1G: 40 % after 4s", ""},
		strings.Split(strings.TrimPrefix(out.String(), "\r\033[K"), "\r\033[K"))
	out.Reset()
	p.show("tree of 1G", 0.5)
	p.clear()
	require.Empty(t, out.String(), "quick work says nothing")

	require.Nil(t, newProgress(&out))
	(*progress)(nil).show("", 0)
	(*progress)(nil).clear()
}
