package bootstrap

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/tier"
	"github.com/ringo-go/ringo/trace/judge"
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

// Regroup waits only a short time for a rank that has called Fail by its own will and lives. It waits for a rank whose
// operation has failed as for the others.
func TestRegroupWithoutTheQuitter(t *testing.T) {
	for name, test := range map[string]struct {
		culprits []int
		comes    time.Duration // -1: never
		took     time.Duration
	}{
		"does not come":    {nil, -1, quitPolls * quitPoll},
		"comes":            {nil, time.Second, time.Second},
		"fails, and comes": {[]int{1}, 20 * time.Second, 20 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			groups, began := Local(3), time.Now()
			groups[1].Fail("enough", test.culprits...)
			awaitFailure(t, groups[0])
			awaitFailure(t, groups[2])
			ranks := []int{0, 2}
			var came sync.WaitGroup
			if test.comes >= 0 {
				came.Go(func() {
					time.Sleep(test.comes)
					got, err := groups[1].Regroup(t.Context(), time.Minute)
					require.NoError(t, err, name)
					require.Equal(t, []int{0, 1, 2}, got.Members, name)
				})
			}
			next := make([]Group, 2)
			for i, r := range ranks {
				came.Go(func() {
					got, err := groups[r].Regroup(t.Context(), time.Minute)
					require.NoError(t, err, name)
					next[i] = got.Group
				})
			}
			came.Wait()
			require.InDelta(t, test.took, time.Since(began), float64(time.Second), name) // the clock of synctest is exact
			for _, g := range append(next, groups...) {
				require.NoError(t, g.Close())
			}
		})
	}
}

// A rank that has called Fail and is then stopped has as much time, once it goes on, as one that runs.
func TestRegroupSlowQuitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, told := 0, []int(nil)
		r := newCoordinator(3, nil, func(to []int, m message) {
			switch m := m.(type) {
			case *where:
				require.Equal(t, []int{1}, to)
				asked++
			case *regrouped:
				told = m.Members
			}
		})
		r.meet = meetHere
		require.True(t, r.hear(1, &fail{Reason: "enough"}))
		for _, rank := range []int{0, 2} {
			require.True(t, r.hear(rank, &regroup{Round: 1, Wait: time.Minute}))
		}
		time.Sleep(30 * time.Second) // rank 2 is stopped
		synctest.Wait()
		require.Equal(t, 1, asked)
		require.Nil(t, told)
		require.True(t, r.hear(1, &position{}))
		time.Sleep(2 * quitPoll)
		synctest.Wait()
		require.Equal(t, 2, asked)
		require.True(t, r.hear(1, &regroup{Round: 1, Wait: time.Minute}))
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, told)
	})
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

// Regroup does not wait for a silent rank, and a rank that comes too late gets ErrExcluded.
func TestRegroupWithout(t *testing.T) {
	t.Parallel()
	tier.Long(t) // it waits
	atOnce(t, 3, func(t *testing.T, groups []Group) {
		for r, g := range groups {
			if r != 2 {
				g.OnHalt(func() { g.Late(stopped("ab", 2).Position) })
			}
		}
		groups[0].Late(stopped("ab", 2).Position)
		f := awaitFailure(t, groups[1])
		require.Equal(t, judge.Silent, f.Late.Reason)
		next := regroupAll(t, groups, []int{0, 1}, time.Minute)
		_, err := groups[2].Regroup(t.Context(), time.Minute)
		require.ErrorIs(t, err, ErrExcluded)
		closeAll(t, next)
	})
}

// The first wait that ends ends the muster.
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

// The shortest wait counts, in whichever order the ranks come.
func TestRegroupShortWait(t *testing.T) {
	t.Parallel()
	atOnce(t, 3, func(t *testing.T, groups []Group) {
		groups[2].Fail("tired")
		next := make([]Group, 2)
		var first sync.WaitGroup
		first.Go(func() { next[0] = regroupAll(t, groups, []int{0}, time.Minute)[0] })
		m := groups[0].(*member)
		require.Eventually(t, func() bool {
			m.order.Lock()
			defer m.order.Unlock()
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.round > 0
		}, time.Minute, time.Millisecond)
		g, err := groups[1].Regroup(t.Context(), 3*time.Second)
		require.NoError(t, err)
		require.Equal(t, []int{0, 1}, g.Members)
		if next[1] = g.Group; g.Group == nil {
			next[1], err = Join(t.Context(), g.ID, 1, 2, JoinOptions{})
			require.NoError(t, err)
		}
		first.Wait()
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

// A muster that all ranks have given up excludes nobody.
func TestRegroupAllGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := Local(3)
		Drop(groups[2])
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := groups[0].Regroup(ctx, 2*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(2 * time.Second) // the wait is over
		next := regroupAll(t, groups, []int{0, 1}, time.Minute)
		require.Equal(t, 2, next[0].Size())
	})
}

// A member that gives up after the new group is made, and before it comes to that, has died there.
func TestRegroupGivenUpLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told *regrouped
		r := newCoordinator(3, nil, func(_ []int, m message) {
			if m, ok := m.(*regrouped); ok {
				told = m
			}
		})
		r.meet = meetHere
		for rank := range 3 {
			require.True(t, r.hear(rank, &regroup{Round: 1, Wait: time.Minute}))
		}
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, told.Members)
		require.True(t, r.hear(2, &regroup{}))
		for rank, g := range told.groups[:2] {
			require.Equal(t, 2, awaitFailure(t, g).Rank, "rank %d", rank)
		}
	})
}
