//go:build !race

package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
	"github.com/ringo-go/ringo/sched/sim"
)

// Under the race detector a sync.Pool forgets at random.
func TestEstimateDoesNotAllocate(t *testing.T) {
	var s sched.Schedule = ring.AllReduce{N: 8}
	for _, m := range []sim.Model{sim.NVLink, sim.SharedMemory} {
		require.Less(t, testing.AllocsPerRun(100, func() { _, _ = sim.Estimate(s, m, 1<<26) }), 1.0)
	}
}
