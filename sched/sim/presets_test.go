package sim_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// What the presets say, in µs.
func TestPresets(t *testing.T) {
	sizes := []int64{8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20}
	rows := []struct {
		name  string
		sched func(n int) sched.Schedule
	}{
		{"ring all-reduce", func(n int) sched.Schedule { return ring.AllReduce{N: n} }},
		{"recursive doubling", func(n int) sched.Schedule { return doubling(n) }},
		{"ring broadcast", func(n int) sched.Schedule { return ring.Broadcast{N: n} }},
		{"pairwise all-to-all", pairwise},
	}
	var out strings.Builder
	for _, tc := range []struct {
		preset string
		ranks  int
	}{
		{"shm", 8}, {"tcp", 8}, {"nvlink", 8}, {"nvlink", 32}, {"ndr", 32}, {"ethernet100", 32}, {"ethernet25", 32},
	} {
		m := sim.Presets[tc.preset]
		fmt.Fprintf(&out, "%-24s", fmt.Sprintf("%d ranks, %s", tc.ranks, m.Name))
		for _, bytes := range sizes {
			fmt.Fprintf(&out, "%11d", bytes)
		}
		fmt.Fprintln(&out)
		for _, row := range rows {
			fmt.Fprintf(&out, "%-24s", row.name)
			for _, bytes := range sizes {
				res, err := sim.Run(context.Background(), row.sched(tc.ranks), m, bytes, sim.Options{})
				require.NoError(t, err)
				fmt.Fprintf(&out, "%11.4g", res.Time*1e6)
			}
			fmt.Fprintln(&out)
		}
		fmt.Fprintln(&out)
	}
	const file = "testdata/presets.txt"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "after a change that is meant: go test ./sched/sim -rewrite")
}
