package ring_test

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringo-go/ringo/ring/tree"
	"github.com/ringo-go/ringo/sched"
)

func ceilLog(n int) int { return bits.Len(uint(n - 1)) }

// The numbers that the doc comments begin with, computed from the schedules.
// The double trees' chunks are halves of the data.
func TestTreePapers(t *testing.T) {
	for n := 2; n <= 200; n++ {
		for name, c := range map[string]struct {
			s          sched.Schedule
			hops, sent int
		}{
			// Sanders, Speck and Träff, broadcast and reduction: the data at
			// most once each way, in 2 log p hops and not n-1.
			"AllReduce": {tree.AllReduce{N: n}, 2 * floorLog(n), min(4, n)},
			"Broadcast": {tree.Broadcast{N: n, Root: sched.Rank(n / 2)}, floorLog(n-1) + 1, 2},
			"Reduce":    {tree.Reduce{N: n, Root: sched.Rank(n / 2)}, floorLog(n-1) + 1, 2},
			// Knuth's binomial tree: as many hops as a rank has one bits.
			"BinomialBroadcast": {tree.BinomialBroadcast{N: n, Root: sched.Rank(n / 2)}, floorLog(n), ceilLog(n)},
			"BinomialReduce":    {tree.BinomialReduce{N: n, Root: sched.Rank(n / 2)}, floorLog(n), 1},
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
func TestTreeTwins(t *testing.T) {
	for p := 1; p <= 300; p++ {
		inner := make([]int, p)
		for chunk := range int32(2) {
			parent, kids := twin(tree.AllReduce{N: p}, chunk)
			reached := 0
			var walk func(r, from sched.Rank, depth int)
			walk = func(r, from sched.Rank, depth int) {
				reached++
				require.LessOrEqual(t, depth, floorLog(p))
				require.Equal(t, from, parent[r], "parent of rank %d of %d in tree %d", r, p, chunk)
				require.LessOrEqual(t, len(kids[r]), 2, "kids of rank %d of %d in tree %d", r, p, chunk)
				if len(kids[r]) > 0 {
					inner[r]++
				}
				for _, kid := range kids[r] {
					walk(kid, r, depth+1)
				}
			}
			root := sched.Rank(slices.Index(parent, sched.Nobody))
			walk(root, sched.Nobody, 0)
			require.Equal(t, p, reached, "ranks in tree %d", chunk)
		}
		for r, times := range inner {
			require.LessOrEqual(t, times, 1, "rank %d of %d is an inner node of both", r, p)
		}
	}
}

// twin is one of the two trees of an all-reduce: a rank adds what its kids send, and its parent sends it the sum.
func twin(s tree.AllReduce, chunk int32) (parent []sched.Rank, kids [][]sched.Rank) {
	parent, kids = make([]sched.Rank, s.N), make([][]sched.Rank, s.N)
	for r := range sched.Rank(s.N) {
		parent[r] = sched.Nobody
		for i := range s.Len(r) {
			switch step := s.At(r, i); {
			case step.Recv == sched.Nobody:
			case step.Src.Buf != sched.None && step.Src.Chunk == chunk:
				kids[r] = append(kids[r], step.Recv)
			case step.Src.Buf == sched.None && step.Dst.Chunk == chunk:
				parent[r] = step.Recv
			}
		}
	}
	return parent, kids
}

// A step is computed in O(log n) and without memory, for any number of ranks.
func BenchmarkTreeAt(b *testing.B) {
	s := tree.AllReduce{N: 1_000_000}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = s.At(sched.Rank(i%s.N), i%2)
	}
}
