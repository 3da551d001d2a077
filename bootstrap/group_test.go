package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// joinAll makes a group of n ranks over loopback, joining in random order.
func joinAll(t testing.TB, n int) []Group { return joinWith(t, n, JoinOptions{apart: true}) }

func joinWith(t testing.TB, n int, o JoinOptions) []Group {
	t.Helper()
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(func() { Stop(id) })
	groups := make([]Group, n)
	var wg sync.WaitGroup
	for _, rank := range rand.Perm(n) {
		wg.Go(func() {
			g, err := Join(within(t, 20*time.Second), id, rank, n, o)
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
				return
			}
			groups[rank] = g
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return groups
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// each runs f for all ranks at once.
func each(groups []Group, f func(g Group)) {
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() { f(g) })
	}
	wg.Wait()
}

func closeAll(t testing.TB, groups []Group) {
	each(groups, func(g Group) {
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// kinds are the ways to have a group; all must behave the same.
var kinds = []struct {
	name string
	make func(t testing.TB, n int) []Group
}{
	{"local", func(_ testing.TB, n int) []Group { return Local(n) }},
	{"tcp", joinAll},
	{"in the hub's process", func(t testing.TB, n int) []Group { return joinWith(t, n, JoinOptions{}) }},
}

// forKinds calls f with a group of each kind, one after the other.
func forKinds(t *testing.T, n int, f func(t *testing.T, groups []Group)) { forEach(t, n, false, f) }

// atOnce is forKinds for tests that wait: all kinds at once.
func atOnce(t *testing.T, n int, f func(t *testing.T, groups []Group)) { forEach(t, n, true, f) }

func forEach(t *testing.T, n int, parallel bool, f func(t *testing.T, groups []Group)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			if parallel {
				t.Parallel()
			}
			groups := k.make(t, n)
			f(t, groups)
			closeAll(t, groups)
		})
	}
}

func awaitFailure(t testing.TB, g Group) *Failure {
	t.Helper()
	select {
	case <-g.Failed():
	case <-time.After(10 * time.Second):
		t.Fatalf("rank %d: not told of the failure", g.Rank())
	}
	return g.Failure()
}

func TestAllGather(t *testing.T) {
	for _, n := range []int{1, 2, 3, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			forKinds(t, n, func(t *testing.T, groups []Group) {
				each(groups, func(g Group) {
					for i := range 5 {
						got, err := g.AllGather(t.Context(), fmt.Appendf(nil, "%d of %d", g.Rank(), i))
						if err != nil {
							t.Errorf("rank %d: %v", g.Rank(), err)
							return
						}
						for r, b := range got {
							if want := fmt.Sprintf("%d of %d", r, i); string(b) != want {
								t.Errorf("got %q, want %q", b, want)
							}
						}
					}
				})
				for _, g := range groups {
					require.Equal(t, groups[0].Key(), g.Key())
					require.Len(t, g.Key(), 32)
				}
			})
		})
	}
}

func TestAllGatherLarge(t *testing.T) {
	forKinds(t, 2, func(t *testing.T, groups []Group) {
		each(groups, func(g Group) {
			data := make([]byte, rendezvous.MaxBlob)
			data[rendezvous.MaxBlob-1] = byte(g.Rank() + 1)
			got, err := g.AllGather(t.Context(), data)
			if err != nil || len(got[1]) != rendezvous.MaxBlob || got[1][rendezvous.MaxBlob-1] != 2 {
				t.Errorf("rank %d: %v", g.Rank(), err)
			}
			_, err = g.AllGather(t.Context(), make([]byte, rendezvous.MaxBlob+1))
			if err == nil {
				t.Error("more than the limit was taken")
			}
		})
	})
}

func TestDeath(t *testing.T) {
	forKinds(t, 4, func(t *testing.T, groups []Group) {
		waiting := make(chan error, 1)
		go func() {
			_, err := groups[0].AllGather(t.Context(), nil)
			waiting <- err
		}()
		Drop(groups[2])
		for _, r := range []int{0, 1, 3} {
			f := awaitFailure(t, groups[r])
			require.Equal(t, 2, f.Rank)
			require.True(t, f.Died)
			require.ErrorContains(t, f, "rank 2 died: ")
		}
		var f *Failure
		require.True(t, errors.As(<-waiting, &f))
		_, err := groups[1].AllGather(t.Context(), nil)
		require.ErrorContains(t, err, "rank 2 died")
	})
}

func TestFail(t *testing.T) {
	atOnce(t, 3, func(t *testing.T, groups []Group) {
		groups[1].Fail("disk full")
		groups[1].Fail("again")
		for _, r := range []int{0, 2} {
			require.Equal(t, &Failure{Rank: 1, Culprits: []int{1}, Reason: "disk full"}, awaitFailure(t, groups[r]))
		}
		groups[0].Fail("because of 1")
		require.Nil(t, groups[1].Failure(), "it knows")
		require.Equal(t, 1, groups[2].Failure().Rank, "the first stays")
	})
}

func TestLeave(t *testing.T) {
	forKinds(t, 4, func(t *testing.T, groups []Group) {
		each(groups, func(g Group) {
			if _, err := g.AllGather(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
		for _, r := range []int{1, 2} { // take part once and go
			require.NoError(t, groups[r].Close())
			require.NoError(t, groups[r].Close())
			_, err := groups[r].AllGather(t.Context(), nil)
			require.ErrorIs(t, err, ErrClosed)
		}
		each([]Group{groups[0], groups[3]}, func(g Group) {
			_, err := g.AllGather(t.Context(), nil)
			var gone *LeftError
			if !errors.As(err, &gone) {
				t.Errorf("got %v", err)
			}
		})
		require.Nil(t, groups[0].Failure(), "to leave is not to fail")
		Drop(groups[3])
		require.Equal(t, 3, awaitFailure(t, groups[0]).Rank)
	})
}

// Ranks in the hub's process need neither connections nor goroutines when the listener is closed.
func TestHubsProcessIsQuiet(t *testing.T) {
	before := runtime.NumGoroutine()
	id, err := NewID(ListenOptions{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	groups := make([]Group, 3)
	var wg sync.WaitGroup
	for r := range groups {
		wg.Go(func() { groups[r], _ = Join(within(t, 20*time.Second), id, r, len(groups), JoinOptions{}) })
	}
	wg.Wait()
	require.NotContains(t, groups, nil)
	hubOf(id).closeListener()
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
	each(groups, func(g Group) {
		all, err := g.AllGather(t.Context(), []byte{byte(g.Rank())})
		if err != nil || len(all) != 3 {
			t.Errorf("rank %d: %v, %v", g.Rank(), all, err)
		}
	})
	Stop(id)
	for r, g := range groups {
		require.ErrorContains(t, awaitFailure(t, g), "the rendezvous was stopped", "rank %d", r)
		require.NoError(t, g.Close())
	}
}
