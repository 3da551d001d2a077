package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asProgram is the variable that makes this test binary the program itself.
const asProgram = "TRAIN_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

func program(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	return cmd
}

// execute runs the program to its end.
func execute(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := program(nil, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestProgram(t *testing.T) {
	for _, tc := range []struct {
		name, args, says string
	}{
		{"processes", "-np 2", "2 ranks over "},
		{"overlap", "-np 2 -overlap", "2 ranks over "},
		{"sockets", "-np 2 -transport socket", "2 ranks over socket"},
		{"goroutines", "-np 3 -transport inproc", "3 ranks over inproc"},
		{"alone", "-np 1", "1 rank;"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append(strings.Fields(tc.args), "-steps", "6", "-batch", "16", "-hidden", "8", "-report", "3", "-check", "2")
			stdout, stderr, status := execute(t, args...)
			require.Zero(t, status, stderr)
			require.Empty(t, stderr)
			require.Contains(t, stdout, tc.says)
			for _, line := range []string{`step +3   loss \d`, `step +6   loss \d`, `test accuracy \d`,
				`a step, .* waiting for gradients`} {
				require.Regexp(t, line, stdout)
			}
			require.Equal(t, 5, strings.Count(stdout, "\n"), "only rank 0 writes: %s", stdout)
		})
	}
}

// Files in MNIST's format, compressed or not, train ranks of which only the
// first reads them.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	d := makeGlyphs(1, 1, 140)
	images, labels := filepath.Join(dir, "images.gz"), filepath.Join(dir, "labels")
	require.NoError(t, os.WriteFile(images, zip(encodeIDX(idx{[]int{140, glyphSide, glyphSide}, d.images})), 0o600))
	require.NoError(t, os.WriteFile(labels, encodeIDX(idx{[]int{140}, d.labels}), 0o600))
	stdout, stderr, status := execute(t, "-np", "2", "-steps", "5", "-images", images, "-labels", labels)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "256-64-10 network, 17098 weights; 120 samples, batches of 128")
	require.Contains(t, stdout, "of 20 samples")
}

func TestUsage(t *testing.T) {
	stdout, stderr, status := execute(t, "-h")
	require.Zero(t, status)
	require.Empty(t, stderr)
	fs := new(options).flags()
	require.Contains(t, stdout, "go run ./examples/train")
	for _, name := range []string{"np", "steps", "batch", "lr", "seed", "images", "labels", "transport", "overlap"} {
		require.NotNil(t, fs.Lookup(name))
		require.Contains(t, stdout, "\n  -"+name)
	}
	for _, tc := range []struct{ name, args, says string }{
		{"unknown flag", "-stepps 4", "-stepps"},
		{"argument", "file", `"file" is not a flag`},
		{"ranks", "-np -1", "want 1…1024"},
		{"steps", "-steps 0", "1 or more"},
		{"batch", "-batch 0", "1 or more"},
		{"huge batch", "-batch 99999999", "at most"},
		{"rate", "-lr 0", "for example 0.05"},
		{"rate that is none", "-lr NaN", "for example 0.05"},
		{"momentum", "-momentum 1", "less than 1"},
		{"pictures alone", "-images x", "come together"},
		{"labels alone", "-labels x", "come together"},
		{"test alone", "-test-images x -test-labels y", "needs -images"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.Equal(t, 2, run(strings.Fields(tc.args), &stdout, &stderr))
			require.Contains(t, stderr.String(), tc.says)
			require.Contains(t, stderr.String(), "train -h")
			require.Empty(t, stdout.String())
		})
	}
}

// A file that rank 0 cannot read ends all ranks, with the reason.
func TestMissingFile(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, how := range []string{"shm,socket", "inproc"} {
		_, stderr, status := execute(t, "-np", "2", "-transport", how, "-images", none, "-labels", none)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, "train: open "+none+": no such file")
		require.Contains(t, stderr, "made-up data")
	}
}
