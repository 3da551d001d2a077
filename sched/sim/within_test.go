package sim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

// A limit changes no time below it, and a time above it is infinite.
func TestEstimateWithin(t *testing.T) {
	runs, stopped := 0, 0
	for _, s := range []sched.Schedule{ring.AllReduce{N: 8}, ring.AllReduce{N: 48}, tree.AllReduce{N: 48}} {
		for name, m := range sim.Presets {
			for _, bytes := range []int64{8, 1 << 20, 1 << 28} {
				whole, err := sim.Estimate(s, m, bytes)
				require.NoError(t, err)
				within, err := sim.EstimateWithin(s, m, bytes, whole)
				require.NoError(t, err)
				require.Equal(t, whole, within)
				within, err = sim.EstimateWithin(s, m, bytes, whole/2)
				require.NoError(t, err)
				if runs++; math.IsInf(within, 1) {
					stopped++
				} else { // rounds that get slower are seen too late
					require.Equal(t, whole, within)
					require.Greater(t, bytes, int64(1<<20), "%T over %s", s, name)
				}
			}
		}
	}
	require.GreaterOrEqual(t, 10*stopped, 9*runs, "%d of %d ended early", stopped, runs)
	_, err := sim.EstimateWithin(ring.AllReduce{N: 4}, sim.Model{}, 1, 1)
	require.ErrorIs(t, err, sim.ErrModel)
}
