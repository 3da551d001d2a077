package host

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Every function on slices has a context by way of With, and so has Start. The communicator itself stays as it is.
func TestWith(t *testing.T) {
	comms := commtest.Local(t, 2, ringo.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	x, counts := []int32{1}, []int{1, 1}
	for _, err := range []error{
		ringo.AllReduce(comms[0].With(ended), x, ringo.Sum),
		ringo.Gatherv(comms[0].With(ended), nil, x, counts, 1),
		ringo.Scan(comms[0].With(ended), x, ringo.Sum),
		ringo.Barrier(comms[0].With(ended)),
		comms[0].With(ended).Start(ringo.BarrierOf()).Wait(),
	} {
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "nothing was done")
	}
	commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := ringo.Barrier(c.With(ctx).With(t.Context())); err != nil { // the last counts
			return err
		}
		return c.With(ctx).Start(ringo.BarrierOf()).Wait()
	}))

	why := errors.New("no need any more")
	for name, call := range map[string]func(c *ringo.Comm) error{
		"Do":    func(c *ringo.Comm) error { return ringo.Scan(c, []int32{1}, ringo.Sum) },
		"Start": func(c *ringo.Comm) error { return c.Start(ringo.ScattervOf(x, nil, counts, 0)).Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			c := commtest.Local(t, 2, ringo.Config{})[1]
			ctx, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(50*time.Millisecond, func() { stop(why) })
			err := call(c.With(ctx))
			require.ErrorIs(t, err, why)
			require.ErrorIs(t, err, ringo.ErrAborted)
			require.ErrorIs(t, c.Err(), why)
		})
	}
	t.Run("a deadline", func(t *testing.T) {
		c := commtest.Local(t, 2, ringo.Config{})[0]
		var err error
		for !errors.Is(err, ringo.ErrTimeout) { // a busy machine may come to it when the deadline has passed
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			err = c.With(ctx).Start(ringo.AllReduceOf(x, ringo.Sum)).Wait()
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.ErrorContains(t, err, "rank 1 never entered it")
	})
}

// In a Group a communicator and the one that With makes of it are the same, in the order of their calls.
func TestWithInGroup(t *testing.T) {
	commtest.Run(t, commtest.Local(t, 2, ringo.Config{}), func(c *commtest.Rank) {
		x, g := []int32{int32(c.Rank() + 1)}, ringo.NewGroup()
		for range 20 {
			g.Add(c.Comm, ringo.AllReduceOf(x, ringo.Sum))
			g.Add(c.With(t.Context()), ringo.BroadcastOf(x, 1))
		}
		require.NoError(c, g.Run())
		require.Equal(c, []int32{3 << 19}, x)
	})
}

// Composites are Calls: they can be started, and stand in groups among others. A result may be apart from the input.
func TestCompositesAsCalls(t *testing.T) {
	const n = 4
	counts := []int{2, 0, 1, 3}
	commtest.Run(t, commtest.Local(t, n, ringo.Config{}), func(c *commtest.Rank) {
		r := c.Rank()
		mine, sums := slices.Repeat([]int32{int32(r)}, counts[r]), slices.Repeat([]int32{n}, counts[r])
		ones, given := []int32{1, 1, 1, 1, 1, 1}, []int32{int32(r) + 1}
		for _, do := range []func(calls []*ringo.Call){
			func(calls []*ringo.Call) {
				g := ringo.NewGroup()
				for _, x := range calls {
					g.Add(c.Comm, x)
				}
				require.NoError(c, g.Run())
			},
			func(calls []*ringo.Call) {
				var all []*ringo.Pending
				for _, x := range calls {
					all = append(all, c.Start(x))
				}
				for _, p := range all {
					require.NoError(c, p.Wait())
				}
			},
			func(calls []*ringo.Call) {
				for _, x := range calls {
					require.NoError(c, c.DoContext(t.Context(), x))
				}
			},
		} {
			all, back, share := make([]int32, 6), make([]int32, counts[r]), make([]int32, counts[r])
			scanned, sum, told := make([]int32, 1), make([]int32, 1), make([]int32, 1)
			in := slices.Clone(given)
			do([]*ringo.Call{
				ringo.GathervOf(all, mine, counts, 3),
				ringo.ScattervOf(back, all, counts, 3),
				ringo.ReduceScattervOf(share, ones, counts, ringo.Sum),
				ringo.ScanToOf(scanned, given, ringo.PreMulSum(2)),
				ringo.AllReduceToOf(sum, given, ringo.Sum),
				ringo.BroadcastToOf(told, given, 2),
				ringo.ScanOf(in, ringo.Max),
			})
			if r == 3 {
				require.Equal(c, []int32{0, 0, 2, 3, 3, 3}, all)
			}
			require.Equal(c, [][]int32{mine, sums}, [][]int32{back, share})
			require.Equal(c, []int32{int32((r + 1) * (r + 2)), 10, 3, int32(r) + 1, int32(r) + 1},
				[]int32{scanned[0], sum[0], told[0], given[0], in[0]})
		}

		// The functions, and ReduceScatterv within its own memory.
		var root []int32
		if r == 1 {
			root = []int32{7}
		}
		told := make([]int32, 1)
		require.NoError(c, ringo.BroadcastTo(c.Comm, told, root, 1))
		require.NoError(c, ringo.ReduceScatterv(c.Comm, ones[:counts[r]], ones, counts, ringo.Sum))
		require.Equal(c, [][]int32{{7}, sums}, [][]int32{told, ones[:counts[r]]})
	})
}

// A Timeout of a composite bounds it.
func TestCompositeTimeout(t *testing.T) {
	for _, call := range []*ringo.Call{ringo.ScanOf([]int32{1}, ringo.Sum),
		ringo.GathervOf(make([]int32, 4), []int32{1}, []int{1, 1, 1, 1}, 0)} {
		c := commtest.Local(t, 4, ringo.Config{Timeout: time.Hour})[0]
		call.Timeout = 20 * time.Millisecond
		began := time.Now()
		if call.Kind == ringo.KindScan { // rank 0 waits for nobody
			c = commtest.Local(t, 4, ringo.Config{Timeout: time.Hour})[3]
		}
		err := c.Do(call)
		require.ErrorIs(t, err, ringo.ErrTimeout)
		require.ErrorContains(t, err, call.Kind.String())
		require.Less(t, time.Since(began), tier.Patience)
	}
}
