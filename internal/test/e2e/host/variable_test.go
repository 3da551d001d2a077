package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// unevenCounts are counts of which some are 0.
func unevenCounts(n int) (counts []int, total int) {
	for r := range n {
		counts = append(counts, (r*r+2)%5)
		total += counts[r]
	}
	return counts, total
}

func TestUneven(t *testing.T) {
	for n := 1; n <= 5; n++ {
		counts, total := unevenCounts(n)
		comms := commtest.Local(t, n, ringo.Config{})
		want := make([]int32, total)
		for i := range want {
			want[i] = int32(i)
		}
		times := func(factor int32, x []int32) (product []int32) {
			for _, v := range x {
				product = append(product, factor*v)
			}
			return product
		}
		for root := range n {
			commtest.Run(t, comms, func(c *commtest.Rank) {
				at := 0
				for _, k := range counts[:c.Rank()] {
					at += k
				}
				mine, in, all := want[at:][:counts[c.Rank()]], slices.Clone(want), make([]int32, total)
				require.NoError(c, ringo.Gatherv(c.Comm, all, slices.Clone(mine), counts, root))
				require.True(c, c.Rank() != root || slices.Equal(all, want), "gathered %v", all)
				got := make([]int32, len(mine))
				require.NoError(c, ringo.Scatterv(c.Comm, got, in, counts, root))
				require.Equal(c, mine, got)
				require.NoError(c, ringo.ReduceScatterv(c.Comm, got, in, counts, ringo.Sum))
				require.True(c, slices.Equal(times(int32(n), mine), got))
				require.NoError(c, ringo.ReduceScatterv(c.Comm, got, in, counts, ringo.PreMulSum(2)))
				require.True(c, slices.Equal(times(2*int32(n), mine), got))
			})
		}
		commtest.Run(t, comms, func(c *commtest.Rank) {
			x := []float64{float64(c.Rank() + 1), 1}
			require.NoError(c, ringo.Scan(c.Comm, x, ringo.Sum))
			r := float64(c.Rank() + 1)
			require.Equal(c, []float64{r * (r + 1) / 2, r}, x)
		})
		for _, err := range []error{ringo.Gatherv(comms[0], nil, []int8{}, nil, 0),
			ringo.Scatterv[int8](comms[0], nil, nil, counts, n), ringo.Scan(comms[0], []float32{1}, ringo.Avg),
			ringo.ReduceScatterv(comms[0], make([]int8, 99), nil, counts, ringo.Sum)} {
			require.ErrorIs(t, err, ringo.ErrInvalid)
		}
		commtest.NoErrors(t, commtest.Each(comms, ringo.Barrier))
	}
}

// Slices of a program's own type are reduced as its underlying type.
func TestNamedTypes(t *testing.T) {
	comms := commtest.Local(t, 2, ringo.Config{})
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
		x := []time.Duration{time.Duration(c.Rank()) * time.Second}
		if err := ringo.AllReduce(c, x, ringo.Max); err != nil || x[0] != time.Second {
			return fmt.Errorf("%v %w", x, err)
		}
		return nil
	}))
}

// doWithin is DoContext with a deadline. It tries again if a busy machine came to the call after the deadline, for then
// nothing was done.
func doWithin(c *ringo.Comm, d time.Duration, call *ringo.Call) error {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		err := c.DoContext(ctx, call)
		cancel()
		if errors.Is(err, ringo.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// A call ends when its context does, and says why.
func TestDoContext(t *testing.T) {
	x := []int32{1}
	comms := commtest.Local(t, 2, ringo.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, comms[0].DoContext(ended, ringo.AllReduceOf(x, ringo.Sum)), context.Canceled)
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return c.DoContext(ctx, ringo.BarrierOf())
	}))
	began := time.Now()
	err := doWithin(comms[0], 50*time.Millisecond, ringo.AllReduceOf(x, ringo.Sum))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, ringo.ErrTimeout)
	require.ErrorContains(t, err, "rank 1 never entered it")
	require.Less(t, time.Since(began), tier.Patience)

	for _, test := range []struct{ call, ctx time.Duration }{{time.Millisecond, time.Minute},
		{time.Minute, 50 * time.Millisecond}} {
		// the sooner of both counts
		began := time.Now()
		alone := ringo.AllReduceOf(x, ringo.Sum)
		alone.Timeout = test.call
		require.ErrorIs(t, doWithin(commtest.Local(t, 2, ringo.Config{})[0], test.ctx, alone), ringo.ErrTimeout)
		require.Less(t, time.Since(began), tier.Patience)
	}

	comms = commtest.Local(t, 2, ringo.Config{})
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("no need any more")
	go func() {
		for len(comms[0].History().Calls) == 0 {
			time.Sleep(time.Millisecond)
		}
		stop(why)
	}()
	err = comms[0].DoContext(ctx, ringo.AllReduceOf(x, ringo.Sum))
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, ringo.ErrAborted)
	require.ErrorIs(t, comms[0].Do(&ringo.Call{Kind: ringo.KindBarrier, Timeout: -1}), ringo.ErrInvalid)
}
