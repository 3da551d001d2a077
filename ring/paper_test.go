package ring_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/internal/test/schedtest"
	"github.com/ringo-go/ringo/ring"
	"github.com/ringo-go/ringo/sched"
)

// The numbers that the doc comments begin with, computed from the schedules.
// Sent and Reduced are in chunks of 1/n of the data, or all of it in a chain.
// Patarasuk and Yuan, lower bound: an all-reduce sends at least 2(n-1)/n of the
// data and adds at least (n-1)/n of it on the busiest rank.
func TestPapers(t *testing.T) {
	for n := 2; n <= schedtest.MaxRanks; n++ {
		for name, c := range map[string]struct {
			s    sched.Schedule
			want sched.Cost
		}{
			"AllReduce": {ring.AllReduce{N: n}, sched.Cost{Hops: 2 * (n - 1), Steps: 2*n - 1, Sent: 2 * (n - 1),
				Received: 2 * (n - 1), Reduced: n - 1}},
			"AllGather": {ring.AllGather{N: n}, sched.Cost{Hops: n - 1, Steps: n, Sent: n - 1, Received: n - 1}},
			"ReduceScatter": {ring.ReduceScatter{N: n},
				sched.Cost{Hops: n - 1, Steps: n, Sent: n - 1, Received: n - 1, Reduced: n - 1}},
			"Broadcast": {ring.Broadcast{N: n}, sched.Cost{Hops: n - 1, Steps: 1, Sent: 1, Received: 1}},
			"Reduce":    {ring.Reduce{N: n}, sched.Cost{Hops: n - 1, Steps: 1, Sent: 1, Received: 1, Reduced: 1}},
		} {
			got, err := sched.CostOf(c.s, 2)
			require.NoError(t, err)
			require.Equal(t, c.want, got, "%s of %d ranks", name, n)
		}
	}
}

// A ring talks to its two neighbours only.
func TestNeighboursOnly(t *testing.T) {
	const n = 7
	for _, s := range []sched.Schedule{ring.AllReduce{N: n}, ring.AllGather{N: n}, ring.ReduceScatter{N: n},
		ring.Broadcast{N: n, Root: 3}, ring.Reduce{N: n, Root: 3}} {
		for r := range sched.Rank(n) {
			for i := range s.Len(r) {
				step := s.At(r, i)
				require.Contains(t, []sched.Rank{sched.Nobody, (r + 1) % n}, step.Send)
				require.Contains(t, []sched.Rank{sched.Nobody, (r + n - 1) % n}, step.Recv)
			}
		}
	}
}

// A step is computed from its numbers alone, for any number of ranks.
func BenchmarkAt(b *testing.B) {
	s := ring.AllReduce{N: 10240}
	for i := 0; b.Loop(); i++ {
		_ = s.At(sched.Rank(i%s.N), i%(2*s.N-1))
	}
}
