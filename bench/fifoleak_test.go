package bench_test

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/gputest"
	"github.com/ringo-go/ringo/internal/test/need"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestFIFOLeak runs the probe fifo-leak. Both programs end with the right results, with the default and the smallest
// ring. A run that takes longer than the limit is killed, and is a failure that says how far it came.
func TestFIFOLeak(t *testing.T) {
	tier.Heavy(t)
	program := filepath.Join(t.TempDir(), "fifo-leak")
	out, err := exec.Command(need.Tool(t, "go"), "build", "-o", program, "./fifo-leak").CombinedOutput()
	require.NoError(t, err, "%s", out)
	run := func(args string) (stdout, stderr string, failed bool) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, strings.Fields(args)...)
		var said, complaints bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &complaints
		err := cmd.Run()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			require.Equal(t, 1, exit.ExitCode())
			return said.String(), complaints.String(), true
		}
		require.NoError(t, err)
		return said.String(), complaints.String(), false
	}
	limit := " -limit " + tier.Soon(time.Minute).String()
	both := "-n 3 -group 300"
	if gputest.OnGPU() {
		both = "-device cuda -n 20000"
	}
	said, complaints, failed := run(both + limit)
	require.False(t, failed, complaints)
	require.Equal(t, 4, strings.Count(said, "results right"), said)
	for _, ranks := range []string{"1", "3", "8"} { // exact in bfloat16
		said, complaints, failed := run("-n 1 -program leak -ring default -g " + ranks + limit)
		require.False(t, failed, complaints)
		require.Contains(t, said, "results right")
	}

	said, complaints, failed = run("-n 100000 -program leak -ring default -limit 300ms")
	require.True(t, failed)
	require.Equal(t, "fifo-leak: 1 runs of ringo failed\n", complaints)
	require.Contains(t, said, "STALLED at ")

	for args, want := range map[string]string{
		"-device tpu":         `-device is "tpu", want emu or cuda`,
		"-peer nccl":          "-peer nccl needs real GPUs: give -device cuda",
		"-peer mpi":           `-peer is "mpi", want nccl or nothing`,
		"-program leak,stall": `-program is "leak,stall", want leak, group or both`,
		"-ring big":           `-ring is "big", want default, smallest or a number of bytes`,
		"-g 0":                "-g, -n, -group and -limit must be positive",
		"now":                 `"now" is not a flag`,
	} {
		_, complaints, failed := run(args)
		require.True(t, failed, args)
		require.Equal(t, "fifo-leak: "+want+"\n", complaints, args)
	}
}
