package capi

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bootstrap"
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

// TestWrongVariables: wrong values of NCCL_DEBUG and NCCL_COMM_BLOCKING are logged, and no call fails.
func TestWrongVariables(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	level := "foo" + rand.Text() // a process says each once
	env := map[string]string{"RINGO_HOST": "1", "NCCL_DEBUG": level, "NCCL_DEBUG_FILE": file, "NCCL_COMM_BLOCKING": "2"}
	l := with(env)
	comms := initAll(t, l, 1)
	id, err := l.UniqueID()
	require.NoError(t, err)
	h, err := l.InitRank(0, 1, 0, []bootstrap.ID{id}, inBackground)
	require.ErrorIs(t, err, errInProgress, "what the program says counts")
	require.NoError(t, errors.Join(l.Destroy(comms[0]), l.Destroy(h)))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text),
		fmt.Sprintf("NCCL WARN NCCL_DEBUG=%q: want NONE, VERSION, WARN, INFO or TRACE; it has no effect", level))
	require.Contains(t, string(text), `NCCL WARN NCCL_COMM_BLOCKING="2" is neither 0 nor 1`)
}

// The lines of the log, to the letter but for the thread.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(&lines{to: &output{out: &out}, host: "h"})
	log.Debug("a", "subsys", "NET", "k", 1)
	log.Info("b", "k", "v w")
	one := log.With("rank", 3, deviceKey, 2, "subsys", "INIT")
	one.Warn("c", "err", errors.New("why"))
	one.WithGroup("g").Error("d")
	log.Warn("e")
	prefix := fmt.Sprintf("h:%d:", os.Getpid())
	var got []string
	for line := range strings.Lines(out.String()) {
		rest, ok := strings.CutPrefix(line, prefix)
		require.True(t, ok, line)
		thread, text, ok := strings.Cut(rest, " ")
		require.True(t, ok)
		require.Regexp(t, `^\d+$`, thread)
		got = append(got, text)
	}
	require.Equal(t, []string{
		"[0] NCCL TRACE a k=1\n", "[0] NCCL INFO b k=v w\n", "[2] NCCL WARN c rank=3 err=why\n", "[2] NCCL WARN d rank=3\n",
		"[0] NCCL WARN e\n",
	}, got)
	require.False(t, (&lines{quiet: true}).Enabled(t.Context(), slog.LevelWarn))
	require.True(t, (&lines{}).Enabled(t.Context(), slog.LevelDebug))

	// A file that cannot be opened is an error with RINGO_DEBUG_FILE, and none with NCCL_DEBUG_FILE.
	file := filepath.Join(t.TempDir(), "no", "file")
	_, err := with(map[string]string{"RINGO_HOST": "1", "RINGO_DEBUG": "INFO", "RINGO_DEBUG_FILE": file}).InitAll(1, nil)
	require.ErrorContains(t, err, "RINGO_DEBUG_FILE: open ")
	l := with(map[string]string{"NCCL_DEBUG": "VERSION", "NCCL_DEBUG_FILE": file})
	_, err = l.env.log(func() string { return "here" })
	require.NoError(t, err)
}

// TestWrongLevel: a wrong level of RINGO_DEBUG is refused, as in a program in Go.
func TestWrongLevel(t *testing.T) {
	_, err := with(map[string]string{"RINGO_HOST": "1", "RINGO_DEBUG": "LOUD"}).InitAll(1, nil)
	require.ErrorIs(t, err, ringo.ErrInvalid)
	require.ErrorContains(t, err, `RINGO_DEBUG="LOUD": want NONE, VERSION, WARN, INFO or TRACE`)
}

// TestFailureIsSaid: a communicator that has failed says so in one line for all ranks of the process, and at its end if
// no call did, and a process that ends in a group says what it has not carried out. NONE says nothing.
func TestFailureIsSaid(t *testing.T) {
	for level, lines := range map[string][]string{"WARN": {
		`AllReduce #1: .* rank 1 has closed the communicator .* comm=\w+`,
		`NCCL WARN invalid usage: ncclGroupStart was never ended: 2 calls were not carried out`}, "NONE": nil} {
		file := filepath.Join(t.TempDir(), "log")
		env := map[string]string{"RINGO_HOST": "1", "NCCL_DEBUG": level, "NCCL_DEBUG_FILE": file, "NCCL_RAS_ENABLE": "0"}
		l := with(env)
		comms := initAll(t, l, 3)
		require.NoError(t, l.Destroy(comms[1]))
		for _, c := range []uintptr{comms[0], comms[2], comms[0]} {
			require.ErrorIs(t, l.Do(0, c, allReduce([]int32{1})), ringo.ErrLeft)
		}
		require.NoError(t, l.Destroy(comms[0]), "its calls have said so")

		g := l.GroupStart()
		require.NoError(t, l.Unended(g, comms[2]))
		data := []int32{1}
		left := alone(t, l)
		require.NoError(t, l.Do(g, left, allReduce(data)))
		require.NoError(t, l.Finalize(g, left))
		require.NoError(t, l.Unended(g, comms[2]), "another's")
		l.Exit()
		require.NoError(t, l.Unended(g, left), "said before")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range lines {
			require.Len(t, regexp.MustCompile(line).FindAllString(string(text), -1), 1, "%s", text)
		}
		require.Equal(t, len(lines) == 0, len(text) == 0, "%s", text)
	}
}

// TestBackgroundFailureIsSaid: what fails behind the program's back is what Destroy returns, once.
func TestBackgroundFailureIsSaid(t *testing.T) {
	l := onHost()
	h := alone(t, l)
	c, err := l.comms.Get(h)
	require.NoError(t, err)
	why := errors.New("why")
	require.ErrorIs(t, l.job(0, job{c, nil, func() (*ringo.Comm, error) { return nil, why }}), errInProgress)
	settled(t, c)
	require.ErrorIs(t, l.Destroy(h), why)
}

// TestSettingsOfNow: each communicator has the settings of its time, and those of the process say that they are late.
func TestSettingsOfNow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	env := map[string]string{"RINGO_HOST": "1", "RINGO_TIMEOUT": "3s"}
	l := with(env)
	timeout := func(want string) {
		t.Helper()
		comms := initAll(t, l, 1)
		c, err := l.comms.Get(comms[0])
		require.NoError(t, err)
		require.Equal(t, want, c.config.Timeout.String())
		require.NoError(t, l.Destroy(comms[0]))
	}
	timeout("3s")
	env["RINGO_TIMEOUT"] = "4s"
	timeout("4s")
	delete(env, "RINGO_TIMEOUT")
	env["NCCL_CONF_FILE"], env["NCCL_DEBUG"], env["NCCL_DEBUG_FILE"] = "later", "WARN", file
	timeout(operationTime.String())
	timeout(operationTime.String())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text),
		`NCCL WARN NCCL_CONF_FILE="later" has no effect: the process has read ""`))
}
