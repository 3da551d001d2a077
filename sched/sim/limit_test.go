package sim_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched/sim"
)

// A run that would take hours ends when its context does, and tells before how
// far it is.
func TestRunEndsWithItsContext(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	var shares []float64
	_, err := sim.Run(ctx, ring.AllReduce{N: 100}, sim.InfiniBandNDR, 1<<50, sim.Options{Progress: func(share float64) {
		if shares = append(shares, share); len(shares) == 3 {
			cancel(enough)
		}
	}})
	require.ErrorIs(t, err, enough)
	require.EqualError(t, err, "sim: enough")
	require.Len(t, shares, 3)
	require.IsIncreasing(t, shares)
	require.Less(t, shares[2], 1e-4)

	_, err = sim.Run(ctx, ring.AllReduce{N: 2000}, sim.InfiniBandNDR, 1<<30, sim.Options{})
	require.ErrorIs(t, err, enough)
	_, err = sim.Decompose(ctx, ring.AllReduce{N: 2000}, sim.InfiniBandNDR, 1<<30, sim.Options{})
	require.ErrorIs(t, err, enough)
}

// Where rounds follow each other evenly, few of them tell the time of all, and
// what is moved is counted for all.
func TestMaxRounds(t *testing.T) {
	const bytes = 100<<20 + 4321
	for name, c := range map[string]struct {
		run func(o sim.Options) (sim.Result, error)
		off float64
	}{
		"one shot, shared cards": {func(o sim.Options) (sim.Result, error) {
			return sim.Run(context.Background(), direct.OneShot{N: 24}, sim.Ethernet25G, bytes, o)
		}, 0.01},
		"tree": {func(o sim.Options) (sim.Result, error) {
			return sim.Run(context.Background(), tree.AllReduce{N: 24}, sim.InfiniBandNDR, bytes, o)
		}, 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			exact, err := c.run(sim.Options{})
			require.NoError(t, err)
			require.Len(t, exact.Ends, exact.Rounds)
			few, err := c.run(sim.Options{MaxRounds: 10})
			require.NoError(t, err)
			require.Len(t, few.Ends, 10)
			require.Equal(t, exact.Rounds, few.Rounds)
			require.Equal(t, exact.Messages, few.Messages)
			require.InEpsilon(t, exact.Time, few.Time, c.off)
			require.InEpsilon(t, exact.IntraBytes, few.IntraBytes, 1e-6)
			require.InEpsilon(t, exact.InterBytes, few.InterBytes, 1e-6)
			same, err := c.run(sim.Options{MaxRounds: exact.Rounds})
			require.NoError(t, err)
			require.Equal(t, exact, same, "as many as there are")
		})
	}
}
