package sched_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/ring/direct"
	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

// Messages are those of the steps at both ends, and their hops are those that CostOf counts.
func TestMessages(t *testing.T) {
	for _, s := range []sched.Schedule{
		ring.AllReduce{N: 5}, tree.AllReduce{N: 6}, direct.OneShot{N: 4}, direct.AlltoAll{N: 4},
		direct.RecursiveDoubling{N: 7}, ring.AllReduce{N: 1},
	} {
		list, err := sched.Messages(s, 8)
		require.NoError(t, err)
		cost, err := sched.CostOf(s, 8)
		require.NoError(t, err)
		hops, sends := 0, 0
		for _, m := range list {
			from, to := s.At(m.From, m.FromStep), s.At(m.To, m.ToStep)
			require.Equal(t, m.To, from.Send)
			require.Equal(t, m.From, to.Recv)
			require.NotEqual(t, sched.None, m.Sent.Buf)
			if m.From != m.To {
				hops = max(hops, m.Hop)
			}
		}
		for r := range s.Shape().Ranks {
			for i := range s.Len(sched.Rank(r)) {
				if s.At(sched.Rank(r), i).Send != sched.Nobody {
					sends++
				}
			}
		}
		require.Len(t, list, sends)
		require.Equal(t, cost.Hops, hops)
	}
}
