package capi

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogToNobody is a process whose standard output nobody reads: the log does not end it.
func TestLogToNobody(t *testing.T) {
	const child = "RINGO_TEST_LOG_TO_NOBODY"
	if os.Getenv(child) != "" {
		l := with(map[string]string{"RINGO_HOST": "1", "NCCL_DEBUG": "WARN"})
		if _, err := l.config(); err != nil {
			t.Fatal(err)
		}
		l.Note(errors.New("what is wrong"))
		os.Exit(7)
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer w.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLogToNobody$")
	var text bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), child+"=1"), w, &text
	var end *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &end)
	require.Equal(t, 7, end.ExitCode(), "%v: %s", end, &text)
}
