package sim_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
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

	_, err = sim.Run(context.Background(), ring.AllReduce{N: 100}, sim.InfiniBandNDR, 1<<20, sim.Options{MaxSteps: 100})
	require.ErrorIs(t, err, sim.ErrSteps)

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
		s sched.Schedule
		m sim.Model
	}{
		"one shot, shared cards": {direct.OneShot{N: 24}, sim.Ethernet25G},
		"tree":                   {tree.AllReduce{N: 24}, sim.InfiniBandNDR},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(rounds int) sim.Result {
				res, err := sim.Run(t.Context(), c.s, c.m, bytes, sim.Options{MaxRounds: rounds})
				require.NoError(t, err)
				return res
			}
			exact, few := run(0), run(10)
			require.Len(t, exact.Ends, exact.Rounds)
			require.Len(t, few.Ends, 10)
			require.Equal(t, exact.Rounds, few.Rounds)
			require.Equal(t, exact.Messages, few.Messages)
			require.InEpsilon(t, exact.Time, few.Time, 0.01)
			require.InEpsilon(t, exact.IntraBytes, few.IntraBytes, 1e-6)
			require.InEpsilon(t, exact.InterBytes, few.InterBytes, 1e-6)
			require.Equal(t, exact, run(exact.Rounds), "as many as there are")
		})
	}
}
