package bench_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/bench"
	"github.com/ringo-go/ringo/bench/tune"
	_ "github.com/ringo-go/ringo/gpu/emu"
)

// smallTune is a tuning of two emulated GPUs in this process.
func smallTune(name string, out io.Writer) *tune.Config {
	coll, err := bench.Find(name)
	if err != nil {
		panic(err)
	}
	return &tune.Config{
		Collectives: []bench.Collective{coll}, Processes: 1, PerProcess: 2,
		Sweep: bench.Sweep{Min: 1, Max: 4096, Factor: 4096}, Type: ringo.BFloat16,
		Device: "emu", Transport: "auto", Unchecked: true, Graph: 1, Blocks: []int{1}, Time: time.Millisecond, Stdout: out,
		Stderr: out,
	}
}

// All algorithms are measured, the chosen ones again with fewer blocks, and the plan holds the chosen ones.
func TestTune(t *testing.T) {
	var b bytes.Buffer
	c := smallTune("reduce", &b)
	c.Out = filepath.Join(t.TempDir(), "my.plan")
	require.NoError(t, tune.Run(t.Context(), c))
	require.Regexp(t, `(?m)^# ring$`, b.String())
	require.Regexp(t, `(?m)^#   size \(B\) +ring +tree +binomial`, b.String())
	require.Regexp(t, `(?m)^ +4096( +[\d.]+[*+ ])+$`, b.String(), "each has a time")
	require.Regexp(t, `(?m)^# reduce with fewer blocks, us; `, b.String())
	require.Regexp(t, `(?m)^ +4096 +\w+ +[\d.]+[*+ ] +[\d.]+$`, b.String(), "measured with one block")
	text, err := os.ReadFile(c.Out)
	require.NoError(t, err)
	p, err := ringo.ParsePlan(c.Out, string(text))
	require.NoError(t, err)
	require.Equal(t, "2 × Emulated GPU", p.Machine)
	require.Equal(t, "p2p", p.Path)
	require.NotEmpty(t, p.Driver)
	require.NotEmpty(t, p.Rows)
}

// A tuning that is ended shows what it has and writes no plan.
func TestTuneEnds(t *testing.T) {
	var b bytes.Buffer
	c := smallTune("allgather", &b)
	c.Out = filepath.Join(t.TempDir(), "my.plan")
	ctx, cancel := context.WithCancel(t.Context())
	c.Stderr = says(cancel)
	err := tune.Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, b.String(), "# allgather, bfloat16", "the table")
	require.NoFileExists(t, c.Out)
}

// says is a writer that ends a tuning at the first line that it writes.
type says func()

func (f says) Write(b []byte) (int, error) {
	f()
	return len(b), nil
}

// A file that is no plan, cannot be read or has no folder is an error before anything is measured.
func TestTuneBefore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "my.plan")
	for _, test := range []struct{ text, out, want string }{
		{"", "", ""},
		{"", file, ""},
		{"{}\n", file, "-o " + file + ": the file is there, but is no plan (line 1: "},
		{"", filepath.Dir(file), ": not a regular file"},
		{"", filepath.Join(file, "under", "x"), "-o: open " + filepath.Join(file, "under", "x") + ": "},
	} {
		if test.text != "" {
			require.NoError(t, os.WriteFile(file, []byte(test.text), 0o644))
		}
		err := tune.Run(t.Context(), &tune.Config{Out: test.out, Processes: 1, PerProcess: 2, Device: "emu",
			Sweep: bench.Sweep{Min: 2, Max: 1}})
		if test.want == "" {
			require.ErrorContains(t, err, "-b 2 is more than -e 1", "nothing is in the way")
			continue
		}
		require.ErrorContains(t, err, test.want)
	}
}
