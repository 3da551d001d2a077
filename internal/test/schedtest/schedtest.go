// Package schedtest proves schedules for many sizes and keeps their tables as
// goldens: the test of every package of algorithms.
package schedtest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/sched"
)

var rewrite = flag.Bool("rewrite", false, "write the goldens anew instead of comparing with them")

// MaxRanks is the largest communicator that Prove tries.
const MaxRanks = 64

// depth is that of the queues, in messages: a proof holds for deeper queues too.
const depth = 2

// Prove checks the schedules that build makes for 1 to MaxRanks ranks, with queues
// of two messages, out of place and, where the collective has the form, in place.
func Prove(t *testing.T, g sched.Goal, build func(n int) sched.Schedule) {
	t.Helper()
	for n := 1; n <= MaxRanks; n++ {
		ProveOne(t, g, build(n))
	}
}

// ProveRooted is Prove for the first, the middle and the last rank as root.
func ProveRooted(t *testing.T, g func(sched.Rank) sched.Goal, build func(n int, root sched.Rank) sched.Schedule) {
	t.Helper()
	for n := 1; n <= MaxRanks; n++ {
		for _, root := range []int{0, n / 2, n - 1} {
			ProveOne(t, g(sched.Rank(root)), build(n, sched.Rank(root)))
		}
	}
}

// ProveOne checks one schedule as Prove does.
func ProveOne(t *testing.T, g sched.Goal, s sched.Schedule) {
	t.Helper()
	for _, inPlace := range []bool{false, true} {
		if inPlace && g.String() == sched.AlltoAll.String() {
			continue
		}
		require.NoError(t, sched.Check(s, g, depth, inPlace), "%T of %d ranks, in place %v", s, s.Shape().Ranks, inPlace)
	}
}

// Golden compares the table of s with testdata/NAME.txt; go test -rewrite writes
// the file.
func Golden(t *testing.T, name string, s sched.Schedule) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	got := sched.Format(s)
	if *rewrite {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test -rewrite writes it")
	require.Equal(t, string(want), got, "if this is meant: go test -rewrite, and read the difference")
}
