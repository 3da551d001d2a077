package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap/launch"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// asProgram is the variable that makes this test binary the program itself.
const asProgram = "MOONS_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// execute runs the program on some ranks, as ringo run does; four ranks and more count as two hosts and more.
func execute(t *testing.T, ranks int, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Setenv(asProgram, "1")
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	var out, errs bytes.Buffer
	err = launch.Run(ctx, launch.Config{N: ranks, Hosts: max(ranks/2, 1), Args: append([]string{os.Args[0]}, args...),
		Stdout: &out, Stderr: &errs, Grace: tier.Soon(10 * time.Second)})
	return out.String(), errs.String(), err
}

var small = []string{"-steps", "60", "-batch", "120", "-hidden", "16", "-layers", "2"}

// All ranks have the same weights in the end, or the program fails; and they have learned.
func TestTrains(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		stdout, stderr, err := execute(t, ranks, small...)
		require.NoError(t, err, stderr)
		require.Empty(t, stderr)
		require.Regexp(t, fmt.Sprintf(`(?s)^%d ranks, 60 steps: 9\d\.\d %% of 2000 other points are right\nweights [0-9a-f]{16} on all ranks\na step took \S+\n$`, ranks), stdout)
	}
}

// The other ranks go on when a rank is killed, even rank 0, and even before the first step.
func TestKilled(t *testing.T) {
	for _, kill := range []string{"2@30", "0@20", "1@0"} {
		stdout, stderr, err := execute(t, 4, append(small, "-kill", kill)...)
		require.NoError(t, err, stderr)
		from := regexp.MustCompile(`@(\d+)`).FindStringSubmatch(kill)[1]
		require.Contains(t, stdout, "3 ranks go on from step "+from+"\n")
		require.Regexp(t, `3 ranks, 60 steps: 9\d\.\d % of 2000`, stdout)
		require.Contains(t, stdout, " on all ranks\n")
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct{ flag, value, says string }{
		{"-kill", "2", `-kill "2": want RANK@STEP`},
		{"-steps", "0", "want 1 or more"},
	} {
		_, stderr, err := execute(t, 1, tc.flag, tc.value)
		require.Error(t, err)
		require.Contains(t, stderr, tc.says)
	}
}
