package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that calls Copies is started once and runs as n ranks; under a launcher it is one of the launcher's ranks.
// Its exit status is that of the rank that failed.
func TestCopies(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	run := func(end string, more ...string) (string, int) {
		cmd := exec.Command(exe, "-test.run=^$", "word")
		cmd.Env = append(os.Environ(), append(more, scene+"=copies", "END="+end)...)
		out, err := cmd.CombinedOutput()
		if e := (*exec.ExitError)(nil); !errors.As(err, &e) {
			require.NoError(t, err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, status := run("0")
	require.Zero(t, status, out)
	for rank := range 3 {
		require.Contains(t, out, fmt.Sprintf("[%d] rank %d of 3, word\n", rank, rank))
	}
	require.Equal(t, 3, strings.Count(out, "word"))
	out, status = run("5")
	require.Equal(t, 5, status, out)
	out, status = run("0", "RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1234")
	require.Zero(t, status, out)
	require.Regexp(t, regexp.MustCompile(`^rank  of , word\n$`), out)
	require.Equal(t, 1, Status(errors.New("x")))
}
