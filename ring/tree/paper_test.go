package tree

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/sched"
)

func floorLog(n int) int { return bits.Len(uint(n)) - 1 }
func ceilLog(n int) int  { return bits.Len(uint(n - 1)) }

// The numbers that the doc comments begin with, computed from the schedules.
// The double trees' chunks are halves of the data.
func TestPapers(t *testing.T) {
	for n := 2; n <= 200; n++ {
		for name, c := range map[string]struct {
			s          sched.Schedule
			hops, sent int
		}{
			// Sanders, Speck and Träff, broadcast and reduction: the data at
			// most once each way, in 2 log p hops and not n-1.
			"AllReduce": {AllReduce{N: n}, 2 * floorLog(n), min(4, n)},
			"Broadcast": {Broadcast{N: n, Root: sched.Rank(n / 2)}, floorLog(n-1) + 1, 2},
			"Reduce":    {Reduce{N: n, Root: sched.Rank(n / 2)}, floorLog(n-1) + 1, 2},
			// Knuth's binomial tree: as many hops as a rank has one bits.
			"BinomialBroadcast": {BinomialBroadcast{N: n, Root: sched.Rank(n / 2)}, floorLog(n), ceilLog(n)},
			"BinomialReduce":    {BinomialReduce{N: n, Root: sched.Rank(n / 2)}, floorLog(n), 1},
		} {
			got, err := sched.CostOf(c.s, 2)
			require.NoError(t, err)
			require.Equal(t, c.hops, got.Hops, "%s of %d ranks: hops", name, n)
			require.Equal(t, c.sent, got.Sent, "%s of %d ranks: chunks sent", name, n)
		}
	}
}

// Sanders, Speck and Träff, construction of the trees: both are binary trees of height ⌊log₂ p⌋
// over all ranks, and no rank is an inner node of both.
func TestTwins(t *testing.T) {
	for p := 1; p <= 300; p++ {
		inner := make([]int, p)
		for chunk := range 2 {
			tree := twin{p, chunk}
			reached := 0
			var walk func(r, parent sched.Rank, depth int)
			walk = func(r, parent sched.Rank, depth int) {
				reached++
				require.LessOrEqual(t, depth, floorLog(p))
				here := tree.at(int(r))
				require.Equal(t, parent, here.parent, "parent of rank %d of %d in tree %d", r, p, chunk)
				if here.kids > 0 {
					inner[r]++
				}
				for _, kid := range here.kid[:here.kids] {
					walk(kid, r, depth+1)
				}
			}
			walk(tree.root(), sched.Nobody, 0)
			require.Equal(t, p, reached, "ranks in tree %d", chunk)
		}
		for r, times := range inner {
			require.LessOrEqual(t, times, 1, "rank %d of %d is an inner node of both", r, p)
		}
	}
}

// A step is computed in O(log n) and without memory, for any number of ranks.
func BenchmarkAt(b *testing.B) {
	s := AllReduce{N: 1_000_000}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = s.At(sched.Rank(i%s.N), i%2)
	}
}
