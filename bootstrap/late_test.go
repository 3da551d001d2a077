package bootstrap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/bootstrap/rendezvous"
)

// stopped is a rank that was stopped in its last collective, and waited for another.
func stopped(calls string, peer int) *rendezvous.Late {
	p := at(1, calls)
	p.Stop = Stopped{Last: uint64(len(calls)), At: uint64(len(calls)), Peer: peer, Waited: 5 * time.Second,
		Still: 5 * time.Second}
	return &rendezvous.Late{Position: p}
}

// idle is a rank that was in no call.
func idle(calls string) *rendezvous.Late {
	p := at(1, calls)
	p.Stop = Stopped{Last: uint64(len(calls)), Peer: -1}
	return &rendezvous.Late{Position: p}
}

// The verdict is the same on all ranks, in every kind of group.
func TestLate(t *testing.T) {
	forKinds(t, 3, func(t *testing.T, groups []Group) {
		for r, g := range groups {
			g.OnHalt(func() {
				if r == 1 {
					g.Late(idle("a").Position)
				} else {
					g.Late(stopped("ab", 1).Position)
				}
			})
		}
		groups[0].Late(stopped("ab", 1).Position)
		want := awaitFailure(t, groups[0])
		require.Equal(t, []int{1}, want.Culprits)
		require.Equal(t, []int{0, 2}, want.Late.Waiting)
		require.EqualValues(t, 1, want.Late.Last.Number)
		for _, g := range groups[1:] {
			require.Equal(t, want, awaitFailure(t, g))
		}
	})
}
