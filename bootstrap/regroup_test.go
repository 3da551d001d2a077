package bootstrap

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// regroupAll calls Regroup on ranks, and joins the new group where it is not made already.
func regroupAll(t *testing.T, groups []Group, ranks []int, wait time.Duration) []Group {
	next := make([]Group, len(ranks))
	var all sync.WaitGroup
	for i, r := range ranks {
		all.Go(func() {
			for {
				g, err := groups[r].Regroup(t.Context(), wait)
				if next[i] = g.Group; err == nil && g.Group == nil {
					t.Cleanup(func() { Stop(g.ID) })
					next[i], err = Join(t.Context(), g.ID, i, len(g.Members), JoinOptions{})
					if f := new(Failure); errors.As(err, &f) { // another rank has gone before it came to the new group
						continue
					}
				}
				if err != nil {
					t.Errorf("rank %d: %v", r, err)
				}
				return
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return next
}

// The ranks that are left after a death go on, again and again, to the last.
func TestRegroup(t *testing.T) {
	forKinds(t, 4, func(t *testing.T, groups []Group) {
		began := time.Now()
		Drop(groups[3])
		for _, g := range groups[:3] {
			awaitFailure(t, g)
		}
		second := regroupAll(t, groups, []int{0, 1, 2}, time.Minute)
		for _, g := range groups[:3] {
			require.NoError(t, g.Close())
		}
		parts := make([][][]byte, 3)
		var all sync.WaitGroup
		for r, g := range second {
			require.Equal(t, r, g.Rank())
			require.Equal(t, 3, g.Size())
			all.Go(func() { parts[r], _ = g.AllGather(t.Context(), []byte{byte(r)}) })
		}
		all.Wait()
		for _, p := range parts {
			require.Equal(t, [][]byte{{0}, {1}, {2}}, p)
		}
		Drop(second[1])
		require.NoError(t, second[2].Close())
		awaitFailure(t, second[0])
		last := regroupAll(t, second, []int{0}, time.Minute)
		require.Equal(t, 1, last[0].Size())
		require.Less(t, time.Since(began), 30*time.Second) // real time
		closeAll(t, []Group{second[0], last[0]})
	})
}

// The first wait that ends ends the round.
func TestRegroupWaits(t *testing.T) {
	t.Parallel()
	atOnce(t, 3, func(t *testing.T, groups []Group) {
		groups[2].Fail("tired")
		next := regroupAll(t, groups, []int{1, 2}, 3*time.Second)
		require.Equal(t, 2, next[0].Size())
		_, err := groups[0].Regroup(t.Context(), time.Minute)
		require.ErrorIs(t, err, ErrExcluded)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = groups[0].Regroup(ctx, time.Minute)
		require.ErrorIs(t, err, context.Canceled)
		closeAll(t, next)
	})
}

// A rank that has given up waiting may come again, and the others go on with it.
func TestRegroupComesAgain(t *testing.T) {
	forKinds(t, 3, func(t *testing.T, groups []Group) {
		Drop(groups[2])
		for _, g := range groups[:2] {
			awaitFailure(t, g)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := groups[0].Regroup(ctx, time.Minute)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for r := range 2 {
			next := regroupAll(t, groups, []int{0, 1}, time.Minute)
			require.Equal(t, 2, next[r].Size())
			closeAll(t, next)
		}
	})
}

// A member dies before it comes to the new group: the others hear so, and call Regroup again.
func TestRegroupAgain(t *testing.T) {
	forKinds(t, 4, func(t *testing.T, groups []Group) {
		Drop(groups[1])
		var all sync.WaitGroup
		errs := make([]error, 4)
		for _, r := range []int{0, 2, 3} {
			all.Go(func() {
				g, err := groups[r].Regroup(t.Context(), time.Minute)
				switch {
				case err != nil:
					errs[r] = err
				case r == 3:
					Drop(groups[3])
				case g.Group != nil:
					<-g.Group.Failed()
				default:
					t.Cleanup(func() { Stop(g.ID) })
					_, errs[r] = Join(t.Context(), g.ID, r/2, 3, JoinOptions{})
					var f *Failure
					require.ErrorAs(t, errs[r], &f)
					require.Equal(t, 2, f.Rank)
				}
			})
		}
		all.Wait()
		next := regroupAll(t, groups, []int{0, 2}, time.Minute)
		require.Equal(t, 2, next[1].Size())
		closeAll(t, next)
	})
}
