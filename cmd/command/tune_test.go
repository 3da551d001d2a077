package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// TestMain lets the test binary be the command ringo, for tune, bench and shells that start it as that.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "tune" || os.Args[1] == "bench" || os.Args[1] == completeCommand) {
		os.Exit(ringoMain(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestTune writes the plan of emulated GPUs, in one process and in two, into one file.
// A communicator and explain then go by that plan.
func TestTune(t *testing.T) {
	tier.Long(t)
	file := filepath.Join(t.TempDir(), "my.plan")
	tune := func(args ...string) string {
		t.Helper()
		code, out, stderr := ringoHere(append([]string{"tune", "-device", "emu", "-unchecked", "-b", "8", "-e", "512", "-f",
			"64", "-time", "1ms"}, args...)...)
		require.Zero(t, code, stderr)
		return out
	}
	plan := func() *ringo.Plan {
		t.Helper()
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		p, err := ringo.ParsePlan(file, string(text))
		require.NoError(t, err)
		return p
	}
	out := tune("-g", "2", "allgather", "-o", file)
	require.Regexp(t, `size \(B\) +ring +direct +logstep +window +copies\n`, out)
	require.Regexp(t, `(?m)^ +512( +[\d.]+[*+ ]){5}$`, out)
	require.Contains(t, out, "RINGO_PLAN="+file)
	p := plan()
	require.Equal(t, []string{"Emulated GPU"}, p.GPUs)
	require.Equal(t, "p2p", p.Path)
	require.Equal(t, "2 × Emulated GPU", p.Machine)
	require.NotEmpty(t, p.Rows)
	last := p.Rows[len(p.Rows)-1]
	require.Equal(t, ringo.PlanRow{Kind: ringo.KindAllGather, From: 2, To: 2, UpTo: -1, Algo: last.Algo,
		Blocks: last.Blocks, Few: last.Few}.String(), last.String())

	tune("-np", "3", "-g", "1", "alltoall", "-e", "8", "-o", file)
	text := plan().String()
	require.Contains(t, text, "\nallgather      2      any         all ")
	require.Contains(t, text, "\nalltoall       3      any         all ")

	out = tune("-np", "2", "-g", "1", "reduce", "-b", "4K", "-e", "4K", "-blocks", "1,2")
	require.Regexp(t, `(?m)^(0: )?# reduce with fewer blocks, us; \* default, \+ efficiency\n(0: )?# +size \(B\) +algorithm +1 +2 +all$`, out, "processes have the same rows")
	require.Contains(t, tune("-g", "2", "allreduce", "-e", "8", "-blocks", "0"), "ringo plan 1\n")

	out = tune("-g", "2", "-transport", "shm", "reduce")
	require.Regexp(t, `size \(B\) +ring +tree +binomial +direct\n`, out, "direct kernels over host memory too")
	require.Contains(t, out, "path     host memory")
	code, _, stderr := ringoHere("tune", "-device", "emu", "-g", "2", "-transport", "shm", "-e", "8", "reduce", "-o", file)
	require.Equal(t, 2, code)
	require.Contains(t, stderr,
		`the file is for Emulated GPU, p2p, but this is Emulated GPU, host memory: name another one`)
	require.NoError(t, os.WriteFile(file, []byte("{}\n"), 0o644))
	code, _, stderr = ringoHere("tune", "-device", "emu", "-o", file)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "my.plan: the file is there, but is no plan (line 1: the first line must be")
}

func TestTuneMistakes(t *testing.T) {
	for want, args := range map[string]string{
		`unknown device "cudo"; did you mean cuda?`:  "-device cudo",
		`unknown device "host"; known are cuda, emu`: "-device host",
		"sendrecv has one algorithm":                 "sendrecv -device emu",
		`did you mean allreduce?`:                    "alreduce -device emu",
		"-b 1K is more than -e 8":                    "-device emu -b 1K -e 8",
		"-f 0.5: want a factor, which must be above": "-device emu -f 0.5",
		"-f 0: want a factor, which must be above 1": "-device emu -f 0",
		"-np 5000: want 1 to 1024":                   "-device emu -np 5000",
		"-g -1: want 1 to 1024":                      "-device emu -g -1",
		"-G -1: want 1 to 10000":                     "-device emu -G -1",
		"-time -1s: want more than 0":                "-device emu -time -1s",
		"one rank has nothing to choose":             "-device emu -g 1",
		"-blocks 8,x: want numbers from 1 to 128":    "-device emu -blocks 8,x",
		"parse size":                             "-device emu -e 1Q",
		"unknown flag -tme; did you mean -time?": "-tme 3s",
	} {
		code, _, stderr := ringoHere(append([]string{"tune"}, strings.Fields(args)...)...)
		require.Equal(t, 2, code, args)
		require.Contains(t, stderr, want, args)
	}
	none := filepath.Join(t.TempDir(), "none")
	code, _, stderr := ringoHere("tune", "-device", "emu", "-o", filepath.Join(none, "my.plan"))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "-o "+filepath.Join(none, "my.plan")+": open "+none+": no such file")
	t.Setenv("RINGO_CUDA_LIBRARY", filepath.Join(none, "libcuda.so.1"))
	code, _, stderr = ringoHere("tune")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no CUDA:")
}
