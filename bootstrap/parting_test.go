package bootstrap

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/ringo-go/ringo/internal/test/tier"
)

// Ranks part in stages: each rank waits until all others have come to the stage, or have closed their group.
func TestPart(t *testing.T) {
	forKinds(t, 4, func(t *testing.T, groups []Group) {
		groups[0].Leave()
		_, err := groups[1].AllGather(t.Context(), nil)
		require.ErrorContains(t, err, "rank 0 has left", "it is heard at once")
		require.Nil(t, groups[1].Failure())

		wait := func(r, stage int) <-chan error {
			done := make(chan error, 1)
			go func() { done <- groups[r].Part(within(t, tier.Patience), stage) }()
			return done
		}
		stays := func(done <-chan error) {
			t.Helper()
			select {
			case err := <-done:
				require.FailNow(t, "a rank does not wait for the others", "%v", err)
			default:
			}
		}
		zero, one, two := wait(0, Left), wait(1, Left), wait(2, Left)
		stays(zero)
		require.NoError(t, <-wait(3, Left))
		for _, done := range []<-chan error{zero, one, two} {
			require.NoError(t, <-done)
		}

		zero = wait(0, Apart)
		require.NoError(t, groups[1].Close())
		two = wait(2, Apart)
		stays(zero)
		require.NoError(t, groups[3].Close())
		require.NoError(t, <-two)
		require.NoError(t, <-zero)
		require.NoError(t, groups[0].Part(t.Context(), Apart), "once more it is so already")
	})
}

// A rank that waits for others gives up when its caller does, when one has died, or when the rendezvous has ended.
func TestPartAlone(t *testing.T) {
	forKinds(t, 3, func(t *testing.T, groups []Group) {
		// a dead rank has parted; rank 2 may go on with others, and closes later
		Drop(groups[0])
		awaitFailure(t, groups[1])
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, groups[1].Part(ctx, Left), context.DeadlineExceeded)
		require.NoError(t, groups[2].Close())
		require.NoError(t, groups[1].Part(t.Context(), Apart))
	})
	forKinds(t, 2, func(t *testing.T, groups []Group) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, groups[1].Part(ctx, Left), context.Canceled)
		groups[1].(*member).lost("the hub has died")
		require.ErrorIs(t, groups[1].Part(t.Context(), Left), errEnded)
	})
}

// If the hub has ended because its rank left, a rank that waits for that rank finds out by itself.
func TestLeftWithHub(t *testing.T) {
	waits := func(n uint64) Position { return Position{Waiting: true, Calls: []Called{{Number: n}}} }
	m := newMember(1, 3, nil, []int{0})
	m.uplink.up = func(message) {}
	m.hear(&rendezvous.Gone{Rank: 0, Seq: 1, Last: 5})
	m.Inquire(waits(6))
	require.Nil(t, m.Failure(), "the hub will say so")
	m.lost("its process ended")
	m.Inquire(waits(5))
	require.Nil(t, m.Failure(), "rank 0 took part in it")
	m.Inquire(waits(6))
	require.Equal(t, &Failure{Rank: 0, Culprits: []int{0}, Left: true, Number: 5}, m.Failure())
}
