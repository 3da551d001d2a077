package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// An AllGather that one rank withdraws fails on all, and the next one completes.
func TestWithdraw(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name   string
		do     func(g Group) error // rank 2's
		is     error
		reason string
	}{
		{"its time is up", func(g Group) error {
			ctx, cancel := context.WithTimeout(cancelled, time.Millisecond)
			defer cancel()
			_, err := g.AllGather(ctx, nil)
			return err
		}, context.Canceled, "context canceled"},
		{"for a cause", func(g Group) error {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Millisecond, func() { cancel(fmt.Errorf("%w: no disk", errors.ErrUnsupported)) })
			_, err := g.AllGather(ctx, nil)
			return err
		}, errors.ErrUnsupported, "unsupported operation: no disk"},
		{"too many bytes", func(g Group) error {
			_, err := g.AllGather(t.Context(), make([]byte, rendezvous.MaxBlob+1))
			return err
		}, nil, "16777217 bytes from each of 4 ranks: the limit is 16777216"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			forKinds(t, 4, func(t *testing.T, groups []Group) {
				errs := make([]error, 4)
				each(groups[:3], func(g Group) { // rank 3 comes later
					if g.Rank() == 2 {
						errs[2] = tt.do(g)
						return
					}
					_, errs[g.Rank()] = g.AllGather(t.Context(), nil)
				})
				_, errs[3] = groups[3].AllGather(t.Context(), nil)
				for r, err := range errs {
					var w *WithdrawnError
					require.ErrorAs(t, err, &w, "rank %d", r)
					require.Equal(t, 2, w.Rank)
					require.Equal(t, tt.reason, w.Reason)
					require.Regexp(t, "^all-gather: rank 2 gave up when rank .*3 had not come: "+tt.reason, err.Error())
					require.Contains(t, w.Missing, 3)
					require.Equal(t, r == 2, w.Err != nil)
				}
				if tt.is != nil {
					require.ErrorIs(t, errs[2], tt.is)
				}
				meet(t, groups)
				for _, g := range groups {
					require.Empty(t, g.(*member).gathers.withdrawn)
				}
			})
		})
	}
}

// meet has all ranks meet in an AllGather, each with its rank.
func meet(t *testing.T, groups []Group) {
	t.Helper()
	each(groups, func(g Group) {
		got, err := g.AllGather(t.Context(), []byte{byte(g.Rank())})
		for r, b := range got {
			if !bytes.Equal(b, []byte{byte(r)}) {
				t.Errorf("rank %d: %v of rank %d: the ranks are out of step", g.Rank(), b, r)
			}
		}
		if err != nil {
			t.Errorf("rank %d: %v", g.Rank(), err)
		}
	})
}

// A rank gives up at any moment: all complete or all fail, and stay in step.
func TestWithdrawAtRandom(t *testing.T) {
	forKinds(t, 3, func(t *testing.T, groups []Group) {
		for _, g := range groups {
			g.(*member).patience = tier.Patience
		}
		completed, failed := 0, 0
		for i := range tier.Count(200, 1000) {
			n := 0
			errs := make([]error, len(groups))
			each(groups, func(g Group) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if g.Rank() == i%len(groups) {
					defer time.AfterFunc(time.Duration(rand.IntN(60))*time.Microsecond, cancel).Stop()
				}
				_, errs[g.Rank()] = g.AllGather(ctx, []byte{byte(i)})
			})
			for r, err := range errs {
				var w *WithdrawnError
				switch {
				case err == nil:
					n++
				case !errors.As(err, &w) || w.Rank != i%len(groups):
					t.Fatalf("rank %d: %v", r, err)
				}
			}
			switch n {
			case 0:
				failed++
			case len(groups):
				completed++
			default:
				t.Fatalf("round %d: completed on %d ranks: %v", i, n, errs)
			}
		}
		t.Logf("%d completed, %d failed", completed, failed)
		meet(t, groups)
	})
}

// A rank that leaves while it waits in an AllGather has given that up.
func TestLeaveInGather(t *testing.T) {
	forKinds(t, 3, func(t *testing.T, groups []Group) {
		wait := make([]chan error, 2)
		for r := range wait {
			wait[r] = make(chan error, 1)
			go func() {
				_, err := groups[r].AllGather(t.Context(), nil)
				wait[r] <- err
			}()
			require.Eventually(t,
				func() bool {
					m := groups[r].(*member)
					m.uplink.order.Lock()
					defer m.uplink.order.Unlock()
					return m.gathers.next == 1
				},
				10*time.Second, time.Millisecond)
		}
		require.NoError(t, groups[1].Close())
		require.ErrorIs(t, <-wait[1], ErrClosed)
		var w *WithdrawnError
		require.ErrorAs(t, <-wait[0], &w)
		if len(w.Missing) > 1 && w.Missing[0] == 0 { // rank 0's part was still on its way to the hub
			w.Missing = w.Missing[1:]
		}
		require.Equal(t, &WithdrawnError{Rank: 1, Missing: []int{2}, Reason: "it left the group"}, w)
		_, err := groups[2].AllGather(t.Context(), nil)
		require.ErrorAs(t, err, &w, "it comes later and hears the same")
	})
}

// A hub that dies while a rank leaves does not delay the rank, which then sends nothing more.
func TestLeaveUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Local(2)[0].(*member)
		var said []message
		g.uplink.up = func(m message) { said = append(said, m) }
		done := make(chan error)
		go func() {
			_, err := g.AllGather(t.Context(), nil)
			done <- err
		}()
		synctest.Wait()
		begin := time.Now()
		require.NoError(t, g.Close())
		g.lost("its process ended")
		require.ErrorIs(t, <-done, ErrClosed)
		require.Zero(t, time.Since(begin))
		g.Inquire(Position{})
		require.Equal(t, []message{&rendezvous.Part{}, &rendezvous.Leave{}}, said)
	})
}

// A hub that does not answer delays a withdrawing rank by a second.
func TestWithdrawUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Local(2)[0].(*member)
		g.uplink.up = func(message) {}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := g.AllGather(ctx, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the rendezvous did not answer within 1s")
	})
}
