//go:build unix

package command

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The second signal ends a process that does not look at its context.
func TestSecondSignal(t *testing.T) {
	const child = "RINGO_TEST_DEAF"
	if os.Getenv(child) != "" {
		ctx := untilInterrupted()
		fmt.Println("up")
		<-ctx.Done()
		fmt.Println("deaf")
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecondSignal$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for _, word := range []string{"up", "deaf"} {
		require.True(t, lines.Scan())
		require.Equal(t, word, lines.Text())
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	for again := time.Tick(10 * time.Millisecond); err == nil; { // until a signal counts as the second
		select {
		case err = <-ended:
		case <-again:
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	require.Equal(t, syscall.SIGTERM, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
}
