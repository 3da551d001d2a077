package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo"
	"github.com/ringo-go/ringo/core/call"
	"github.com/ringo-go/ringo/internal/test/commtest"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// within fails the test if f takes longer than most.
func within(t *testing.T, most time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(most):
		require.FailNow(t, what+" takes too long")
	}
}

// An operator that panics ends the communicator, and Close returns, so that a program that
// defers it prints the panic.
func TestPanicInOperator(t *testing.T) {
	comms := commtest.Local(t, 3, ringo.Config{})
	bad := ringo.UserOp("bad", func(_ ringo.DataType, dst, src []byte) { panic("no such luck") })
	var panicked any
	errs := commtest.Each(comms, func(c *ringo.Comm) (err error) {
		if c.Rank() == 1 {
			defer func() { panicked = recover() }()
			return ringo.AllReduce(c, make([]float32, 1000), bad)
		}
		return ringo.AllReduce(c, make([]float32, 1000), ringo.UserOp("good", func(_ ringo.DataType, dst, src []byte) {}))
	})
	require.Equal(t, "no such luck", panicked)
	for _, r := range []int{0, 2} {
		if errs[r] == nil { // it needed nothing more of rank 1
			errs[r] = ringo.Barrier(comms[r])
		}
		require.ErrorIs(t, errs[r], ringo.ErrPeer)
		require.ErrorContains(t, errs[r], "rank 1")
		require.ErrorContains(t, errs[r], "panicked")
	}
	within(t, 3*time.Second, "Close", func() {
		for _, c := range comms {
			c.Close()
		}
	})
}

// A function on slices whose call would lose data is an error.
func TestTraps(t *testing.T) {
	for n, lengths := range map[int][2]int{2: {5, 4}, 4: {3, 0}} {
		comms := commtest.Local(t, n, ringo.Config{})
		for _, err := range commtest.Each(comms, func(c *ringo.Comm) error {
			return ringo.AlltoAll(c, make([]int32, lengths[0]), make([]int32, lengths[0]))
		}) {
			require.ErrorIs(t, err, ringo.ErrInvalid)
			require.ErrorContains(t, err, "would be lost")
		}
		for _, err := range commtest.Each(comms, func(c *ringo.Comm) error {
			return ringo.ReduceScatter(c, make([]int32, 2), make([]int32, 2*n+1), ringo.Sum)
		}) {
			require.ErrorIs(t, err, ringo.ErrInvalid)
		}
		commtest.NoErrors(t, commtest.Each(comms, ringo.Barrier))
	}
}

// An operator on structs gets whole ones, whatever the slots and shares are.
func TestUserOpOfStructs(t *testing.T) {
	const size, count = 24, 1000
	whole := ringo.UserOpOf("structs", size, func(_ ringo.DataType, dst, src []byte) {
		if len(dst)%size != 0 {
			panic(fmt.Sprintf("%d bytes are no structs", len(dst)))
		}
		for i := range dst {
			dst[i] += src[i]
		}
	})
	for _, cfg := range []ringo.Config{{SlotBytes: 256, Slots: 4}, {SlotBytes: 1024, Deterministic: call.RankOrder},
		{SlotBytes: 64}} {
		for _, algo := range []string{"", "ring", "twoshot", "tree"} {
			cfg.Algo = algo
			comms := commtest.Local(t, 3, cfg)
			commtest.Run(t, comms, func(c *commtest.Rank) {
				x, want := make([]uint8, size*count), make([]uint8, size*count)
				for i := range x {
					x[i], want[i] = uint8(i+c.Rank()), uint8(3*i+3)
				}
				require.NoError(c, ringo.AllReduce(c.Comm, x, whole))
				require.True(c, slices.Equal(want, x))
			})
			err := ringo.AllReduce(comms[0], make([]uint8, size+1), whole)
			require.ErrorIs(t, err, ringo.ErrInvalid)
		}
	}
	err := ringo.AllReduce(commtest.Local(t, 1, ringo.Config{SlotBytes: 64})[0], make([]uint8, 80),
		ringo.UserOpOf("large", 80, nil))
	require.ErrorIs(t, err, ringo.ErrInvalid)
}

// A rank closes while the others go on: they hear of it soon, and it is not a failure.
func TestDeparture(t *testing.T) {
	t.Parallel()
	for _, cfg := range commtest.EveryTransport {
		for _, tc := range []struct {
			name string
			call func(c *ringo.Comm) error // of the ranks that stay
		}{
			{"AllReduce", func(c *ringo.Comm) error { return ringo.AllReduce(c, make([]float32, 10_000), ringo.Sum) }},
			{"Broadcast of who has left", func(c *ringo.Comm) error { return ringo.Broadcast(c, make([]float32, 10), 1) }},
			{"Barrier", ringo.Barrier},
			{"Recv", func(c *ringo.Comm) error {
				if c.Rank() == 1 {
					return nil
				}
				return ringo.Recv(c, make([]byte, 8), 1)
			}},
			{"Group", func(c *ringo.Comm) error {
				if c.Rank() == 1 {
					return nil
				}
				var g ringo.Group
				g.Add(c, ringo.RecvOf(make([]byte, 8), 1))
				g.Add(c, ringo.SendOf(make([]byte, 8), 2-c.Rank()))
				g.Add(c, ringo.RecvOf(make([]byte, 8), 2-c.Rank()))
				return g.Run()
			}},
			{"Scan", func(c *ringo.Comm) error { return ringo.Scan(c, make([]int32, 8), ringo.Sum) }},
		} {
			for _, before := range tier.Some(2, []bool{false, true}) { // there are connections
				t.Run(fmt.Sprintf("%s %s %v", commtest.NameOf(cfg), tc.name, before), func(t *testing.T) {
					t.Parallel()
					comms := commtest.Local(t, 3, cfg)
					began := time.Now()
					errs := commtest.Each(comms, func(c *ringo.Comm) error {
						if before {
							if err := tc.call(c); err != nil {
								return err
							}
						}
						if c.Rank() == 1 {
							return c.Close()
						}
						return tc.call(c)
					})
					require.NoError(t, errs[1])
					for _, r := range []int{0, 2} {
						for errs[r] == nil && time.Since(began) < tier.Patience { // it needs nothing of rank 1
							errs[r] = comms[r].Failure()
							time.Sleep(time.Millisecond)
						}
						require.Error(t, errs[r])
						require.True(t, errors.Is(errs[r], ringo.ErrLeft) ||
							strings.Contains(errs[r].Error(), ringo.ErrLeft.Error()), "%v", errs[r])
						require.ErrorContains(t, errs[r], "rank 1")
						var e *ringo.Error
						require.ErrorAs(t, comms[r].Failure(), &e)
					}
					require.Less(t, time.Since(began), tier.Patience)
				})
			}
		}
	}
}

// A rank hears of every departure that it waits for, not only of the first, before its wait and during it.
func TestSecondDeparture(t *testing.T) {
	t.Parallel()
	for _, during := range []bool{false, true} {
		t.Run(fmt.Sprint("during the wait ", during), func(t *testing.T) {
			t.Parallel()
			comms := commtest.Local(t, 3, ringo.Config{Timeout: time.Hour})
			require.NoError(t, comms[1].Close())
			began := time.Now()
			if during {
				time.AfterFunc(1500*time.Millisecond, func() { comms[2].Close() }) // the rank has asked before
			} else {
				require.NoError(t, comms[2].Close())
			}
			err := ringo.Recv(comms[0], make([]byte, 8), 2)
			require.ErrorIs(t, err, ringo.ErrLeft)
			require.ErrorContains(t, err, "rank 2")
			require.Less(t, time.Since(began), tier.Patience)
		})
	}
}

// Whatever goes wrong with a Split on one rank, all hear of it, and the next one works.
func TestSplitFailures(t *testing.T) {
	comms := commtest.Local(t, 3, ringo.Config{})
	well := func() {
		t.Helper()
		parts := make([]*ringo.Comm, 3)
		commtest.NoErrors(t, commtest.Each(comms, func(c *ringo.Comm) (err error) {
			parts[c.Rank()], err = c.Split(t.Context(), c.Rank()&1, math.MaxInt-c.Rank()*(math.MaxInt/2))
			if err == nil {
				err = ringo.Barrier(parts[c.Rank()])
			}
			return err
		}))
		require.Equal(t, 1, parts[0].Rank(), "keys far apart")
		for _, p := range parts {
			require.NoError(t, p.Close())
		}
	}
	well()
	for _, err := range commtest.Each(comms, func(c *ringo.Comm) error {
		color := 0
		if c.Rank() == 1 {
			color = -7
		}
		_, err := c.Split(t.Context(), color, 0)
		return err
	}) {
		require.ErrorIs(t, err, ringo.ErrInvalid)
		require.ErrorContains(t, err, "rank 1: color -7")
	}
	well()
	began := time.Now()
	gone := make(chan struct{})
	errs := commtest.Each(comms, func(c *ringo.Comm) error {
		ctx := t.Context()
		if c.Rank() == 2 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			defer close(gone)
		}
		if c.Rank() == 0 {
			<-gone
		}
		_, err := c.Split(ctx, 0, 0)
		return err
	})
	require.ErrorIs(t, errs[2], context.DeadlineExceeded)
	require.ErrorContains(t, errs[2], "0", "who had not come")
	for _, r := range []int{0, 1} {
		require.ErrorIs(t, errs[r], ringo.ErrPeer)
		require.ErrorContains(t, errs[r], "rank 2")
	}
	require.Less(t, time.Since(began), tier.Patience)
	well()
	commtest.NoErrors(t, commtest.Each(comms,
		func(c *ringo.Comm) error { return ringo.AllReduce(c, make([]int32, 100), ringo.Sum) }))
}

// A rank calls Split, the others something else.
func TestSplitMismatch(t *testing.T) {
	t.Parallel()
	for _, cfg := range commtest.EveryTransport {
		t.Run(commtest.NameOf(cfg), func(t *testing.T) {
			t.Parallel()
			comms := commtest.Local(t, 3, cfg)
			began := time.Now()
			for r, err := range commtest.Each(comms, func(c *ringo.Comm) error {
				if c.Rank() == 1 {
					_, err := c.Split(t.Context(), 0, 0)
					return err
				}
				return ringo.AllReduce(c, make([]int32, 100), ringo.Sum)
			}) {
				require.Error(t, err)
				require.ErrorContains(t, err, call.ErrMismatch.Error(), "rank %d", r)
				require.ErrorContains(t, err, "Split #1", "rank %d", r)
				require.ErrorContains(t, err, "AllReduce #1", "rank %d", r)
			}
			require.Less(t, time.Since(began), tier.Patience)
		})
	}
}

// A group's sends would fit in a queue, but for the data of earlier sends in it.
func TestGroupBehindSends(t *testing.T) {
	for _, cfg := range commtest.EveryTransport {
		t.Run(commtest.NameOf(cfg), func(t *testing.T) {
			cfg.Timeout = 5 * time.Second
			commtest.Run(t, commtest.Local(t, 2, cfg), func(c *commtest.Rank) {
				peer := 1 - c.Rank()
				for i := range ringo.DefaultSlots {
					require.NoError(c, ringo.Send(c.Comm, []int64{int64(i)}, peer))
				}
				var g ringo.Group
				in := make([]int64, 1)
				g.Add(c.Comm, ringo.SendOf([]int64{99}, peer))
				g.Add(c.Comm, ringo.RecvOf(in, peer))
				require.NoError(c, g.Run())
				for i := range int64(ringo.DefaultSlots) {
					require.Equal(c, i, in[0])
					require.NoError(c, ringo.Recv(c.Comm, in, peer))
				}
				require.Equal(c, int64(99), in[0], "the last message")
			})
		})
	}
}

// Ranks that wait for nothing when another fails have no error until their next call, unless they ask.
func TestIdleRank(t *testing.T) {
	comms := commtest.Local(t, 3, ringo.Config{})
	comms[1].Abort(errors.New("for a reason"))
	for _, r := range []int{0, 2} {
		var e *ringo.Error
		for began := time.Now(); comms[r].Failure() == nil && time.Since(began) < tier.Patience; {
			time.Sleep(time.Millisecond)
		}
		require.ErrorAs(t, comms[r].Failure(), &e)
		require.ErrorIs(t, e, ringo.ErrPeer)
		require.Equal(t, []int{1}, e.Culprits)
		require.NoError(t, comms[r].Err())
		err := ringo.Barrier(comms[r])
		require.Error(t, comms[r].Err())
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, ringo.ErrPeer)
		require.ErrorContains(t, err, "for a reason")
		require.Equal(t, "Barrier", e.Op)
	}
}
