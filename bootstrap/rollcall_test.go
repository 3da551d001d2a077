package bootstrap

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
	"github.com/stretchr/testify/require"
)

// at is a position: one letter a collective, the first of them number from.
func at(from uint64, calls string) (p Position) {
	for i, c := range calls {
		p.Calls = append(p.Calls, Called{Number: from + uint64(i), Call: [16]byte{byte(c)}})
	}
	return p
}

// waits is at for a rank that waits in the last collective.
func waits(from uint64, calls string) Position {
	p := at(from, calls)
	p.Waiting = true
	return p
}

func TestSilentMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups := Local(3)
		groups[1].(*member).uplink.up = func(message) {} // like a process that is stopped
		for _, want := range [][]int{nil, {1}} {
			time.Sleep(rendezvous.RollTime)
			groups[0].Inquire(waits(1, "a"))
			synctest.Wait()
			require.Equal(t, want, groups[0].Silent())
		}
		require.Nil(t, groups[0].Failure(), "to be silent is not to fail")
		closeAll(t, []Group{groups[0], groups[2]})
	})
}

// One rank waits in a call, the others are elsewhere.
func TestInquire(t *testing.T) {
	t.Parallel()
	atOnce(t, 3, func(t *testing.T, groups []Group) {
		require.Empty(t, groups[2].Silent())
		groups[0].Locate(func() (Position, bool) { return Position{}, false })
		groups[1].Locate(func() (Position, bool) { return at(1, "aab"), true })
		many := at(1, "aac")
		for n := range uint64(100) {
			many.Calls = append([]Called{{Number: 0, Call: [16]byte{byte(n)}}}, many.Calls...)
		}
		many.Waiting = true
		groups[2].Inquire(many)
		want := &Failure{Rank: -1, Culprits: []int{1, 2},
			Disagree: &Disagreement{Number: 3, RankA: 1, CallA: [16]byte{'b'}, RankB: 2, CallB: [16]byte{'c'}}}
		for _, g := range groups {
			require.Equal(t, want, awaitFailure(t, g))
		}
		_, err := groups[0].AllGather(t.Context(), nil)
		require.ErrorContains(t, err, "ranks 1 and 2 make different calls as collective #3")
	})
}
